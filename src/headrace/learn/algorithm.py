# SPDX-License-Identifier: Apache-2.0
"""The learner's seam: what every algorithm is, and the two forms of experience that it takes.

Who made the experience, and in which process the learner runs, is nowhere to be seen from here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.policy import Array, Policy

State = Any
"""All that an algorithm learns and keeps: a pytree of arrays, saved whole by a checkpoint."""
Acting = Any
"""The part of it that a policy needs: a pytree of float32 arrays, shipped to whoever acts."""
Metrics = dict[str, Array]
"""Scalars by name: `loss/policy`, `policy/entropy`, ..."""


class Rollout(NamedTuple):
    """Consecutive steps [T, N, ...] of N environments, for on-policy algorithms.

    `next_*` is what followed the action, before any reset; so `next_obs[t]` is `obs[t + 1]`
    wherever no episode ended at t.
    """

    obs: Array
    action: Array
    reward: Array
    """Of the one who acted."""
    terminated: Array
    truncated: Array
    next_obs: Array
    extras: dict[str, Array]
    """What the policy noted as it acted, with the parameters of that time: `log_prob`, `value`."""
    mask: Array | None = None
    next_mask: Array | None = None
    to_play: Array | None = None
    next_to_play: Array | None = None


class Transitions(NamedTuple):
    """Separate transitions [B, ...] in no order, for off-policy algorithms.

    One step, or n: then `reward` is their discounted sum and `next_obs` what followed the last.
    """

    obs: Array
    action: Array
    reward: Array
    discount: Array
    """What the value of `next_obs` counts: γⁿ, and 0 where the rules ended the episode."""
    next_obs: Array
    mask: Array | None = None
    next_mask: Array | None = None


class Algorithm(ABC):
    """One algorithm for one environment: pure functions, and the configuration they close over.

    `init` gives NumPy arrays and compiles nothing; `update` is for `jax.jit`. A policy acts on
    NumPy arrays without JAX being imported, so that samplers start fast; both libraries' policies
    choose the same actions from the same parameters, to rounding.
    """

    name: ClassVar[str]
    on_policy: ClassVar[bool]
    """Whether `update` takes a `Rollout`; otherwise `Transitions`."""

    def __init__(self, spec: EnvSpec, config: Any):
        self.spec = spec
        self.config = config

    @abstractmethod
    def init(self, seed: int) -> State:
        """What it knows at the beginning."""

    @abstractmethod
    def acting(self, state: State) -> Acting:
        """The part of the state that `policy` takes as its params."""

    @abstractmethod
    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Who acts: exploring as the algorithm does, or choosing what it holds best."""

    def check_size(self, size: int) -> None:  # noqa: B027 - most take any
        """Raise unless `update` takes rollouts of so many samples."""

    @abstractmethod
    def update(self, state: State, experience: Any) -> tuple[State, Metrics]:
        """Learn from one rollout, or from one batch of transitions."""

    @property
    def prefers_host(self) -> bool:
        """Whether `host_update` is the faster one, however long the run."""
        return False

    def host_update(self) -> Callable[[State, Any], tuple[State, Metrics]]:
        """What `update` does, to rounding, in NumPy arrays and without JAX; raises if it cannot."""
        raise HeadraceError(f"{self.name} learns by XLA only: --learner xla")
