# SPDX-License-Identifier: Apache-2.0
"""Policies: pure functions from observations to actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.philox import Identity, policy_uniforms
from headrace.envs.spec import EnvSpec


class PolicyKey(NamedTuple):
    """The policy's own counter: its random numbers depend on environment and step alone."""

    who: Identity
    step: Array
    """How many steps the environments have taken since they were seeded: one word."""


@dataclass(frozen=True)
class Policy:
    """`apply(params, obs, mask, key) -> (action, extras)`, for a batch of observations `[N, ...]`.

    `mask` is uint8 `[N, bytes]`, bits that `legal_actions` unpacks, where some actions may be
    illegal, else None. It must be pure, and written for the arrays of `namespace`. `extras` is a
    dict of arrays `[N, ...]` that the batch keeps. `policy_uniforms(namespace, key, count)` gives
    random numbers. To run in worker processes it must also be picklable.
    """

    apply: Callable[[Any, Array, Array | None, PolicyKey], tuple[Array, dict[str, Array]]]
    namespace: Literal["numpy", "jax"]


def action_dtype(space: gymnasium.Space) -> np.dtype:
    """The smallest dtype that holds an action."""
    if isinstance(space, gymnasium.spaces.Discrete):
        top = int(space.start + space.n - 1)
        return np.dtype(np.min_scalar_type(top if space.start >= 0 else -top - 1))
    return np.dtype(np.float32) if space.dtype == np.float64 else np.dtype(space.dtype)


def legal_actions(ns: Namespace, mask: Array, count: int) -> Array:
    """Masks of bits [..., bytes] as booleans [..., count]; for NumPy and JAX."""
    bits = ns.xp.unpackbits(mask, axis=-1, count=count, bitorder="little")
    return bits.astype(bool)


@dataclass(frozen=True)
class MlpPolicy:
    """A small network with a value head, as PPO has: categorical or Gaussian actions.

    `MlpPolicy(spec).policy("jax")` with `MlpPolicy(spec).init(seed)` as params: what the benchmarks
    drive environments with.
    """

    spec: EnvSpec
    hidden: tuple[int, ...] = (64, 64)

    def init(self, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
        """Parameters: a matrix and a bias for each layer, the last with actions and the value."""
        generator = np.random.default_rng(seed)
        sizes = [int(np.prod(self.spec.observation_space.shape or ())), *self.hidden]
        sizes.append(self._outputs + 1)
        return [
            (
                generator.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32),
                np.zeros(b, np.float32),
            )
            for a, b in pairwise(sizes)
        ]

    def policy(self, library: Literal["numpy", "jax"]) -> Policy:
        """The policy for NumPy or JAX arrays."""
        head = _Categorical if self._discrete else _Gaussian
        return Policy(head(library), library)

    @property
    def _discrete(self) -> bool:
        return isinstance(self.spec.action_space, gymnasium.spaces.Discrete)

    @property
    def _outputs(self) -> int:
        space = self.spec.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return int(space.n)
        return int(np.prod(space.shape or ()))


@dataclass(frozen=True)
class _Head:
    library: Literal["numpy", "jax"]

    def forward(self, ns: Namespace, params: Any, obs: Array) -> tuple[Array, Array]:
        hidden = obs.reshape((obs.shape[0], -1))
        for matrix, bias in params[:-1]:
            hidden = ns.xp.tanh(hidden @ matrix + bias)
        out = hidden @ params[-1][0] + params[-1][1]
        return out[:, :-1], out[:, -1]


class _Categorical(_Head):
    def __call__(
        self, params: Any, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Array]]:
        ns = namespace(self.library)
        xp = ns.xp
        logits, value = self.forward(ns, params, obs)
        if mask is not None:
            logits = xp.where(legal_actions(ns, mask, logits.shape[-1]), logits, -np.inf)
        shifted = logits - logits.max(axis=-1, keepdims=True)
        exps = xp.exp(shifted)
        sums = xp.cumulative_sum(exps, axis=-1)
        (uniform,) = policy_uniforms(ns, key, 1)
        # In (0, sum]: so that never an action is chosen whose probability is 0.
        threshold = (1 - uniform) * sums[:, -1]
        action = (threshold[:, None] > sums[:, :-1]).sum(axis=-1)
        log_probs = shifted - xp.log(sums[:, -1:])
        log_prob = xp.take_along_axis(log_probs, action[:, None], axis=-1)[:, 0]
        return action, {"log_prob": log_prob, "value": value}


class _Gaussian(_Head):
    def __call__(
        self, params: Any, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Array]]:
        ns = namespace(self.library)
        xp = ns.xp
        mean, value = self.forward(ns, params, obs)
        count = mean.shape[-1]
        uniforms = policy_uniforms(ns, key, 2 * count)
        noise = [  # Box and Muller; 1 - u is in (0, 1]
            xp.sqrt(-2 * xp.log(1 - a)) * xp.cos(2 * np.float32(np.pi) * b)
            for a, b in zip(uniforms[:count], uniforms[count:], strict=True)
        ]
        noise = xp.stack(noise, axis=-1)
        log_prob = (-0.5 * noise * noise - np.float32(0.5 * np.log(2 * np.pi))).sum(axis=-1)
        return mean + noise, {"log_prob": log_prob, "value": value}
