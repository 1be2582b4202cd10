# SPDX-License-Identifier: Apache-2.0
"""The one interface of all rungs, and what those that fill host memory share."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import gymnasium
import numpy as np

from headrace import aligned
from headrace.collect.batch import Batch
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import (
    Identity,
    identify,
    legal_words,
    random_actions,
    random_legal,
)
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.policy import Policy, PolicyKey, action_dtype


@dataclass(frozen=True)
class Request:
    """What to collect: everything a rung is made from."""

    spec: EnvSpec
    num_envs: int
    steps: int
    """T: steps of every environment in a batch."""
    policy: Policy | Literal["random"] = "random"
    seed: int = 0
    first_env: int = 0
    """Global index of the first environment: environment i is the same on any rank or worker."""
    threads: int | None = None
    """For the rungs that have threads; None: all processors."""
    workers: int | None = None
    """For the rungs that have processes; None: one for each processor."""
    ranks: int | None = None
    """For the mpi rung: its processes; None: one for each processor."""
    fused_steps: int | None = None
    """For the fused native rung: steps a call; None: all T."""

    def __post_init__(self) -> None:
        for name in ("num_envs", "steps", "threads", "workers", "ranks", "fused_steps"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise HeadraceError(f"{name} is {value!r}; it must be a whole number of at least 1")
        if not isinstance(self.first_env, int) or not 0 <= self.first_env < 2**32:
            raise HeadraceError(f"first_env is {self.first_env!r}; it must be 0 or more")
        if self.first_env + self.num_envs > 2**32:
            raise HeadraceError(f"num_envs is {self.num_envs}; environments are numbered to 2^32")
        if not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 2**64:
            raise HeadraceError(f"seed is {self.seed!r}; it must be in 0 .. 2^64 - 1")
        if not (self.policy == "random" or isinstance(self.policy, Policy)):
            raise HeadraceError(f"policy is {self.policy!r}; give 'random' or a headrace.Policy")


class Collector(ABC):
    """A rung: one way of turning an environment and a policy into experience.

    Every `collect()` continues where the last one ended. Episodes are reset in the step that ends
    them, so a batch is T x N real transitions. Environment `first_env + i` and its random numbers
    depend on the seed alone. A collector belongs to one thread at a time; `close()` it, or use
    `with`.
    """

    rung: ClassVar[str]
    definition: ClassVar[str]
    policies: ClassVar[tuple[str, ...]] = ("random", "numpy", "jax")
    """The policies this rung takes: "random", and those of a namespace."""

    def __init__(self, request: Request):
        request.spec.require(self.definition, f"the {self.rung} rung")
        kind = request.policy if isinstance(request.policy, str) else request.policy.namespace
        if kind not in self.policies:
            raise HeadraceError(
                f"the {self.rung} rung takes these policies: {', '.join(self.policies)}; not {kind}"
            )
        self.request = request
        self.spec = request.spec
        self.clock = 0
        """Steps taken by every environment since it was seeded."""

    @abstractmethod
    def collect(self, params: Any = None) -> Batch:
        """The next T steps of every environment. `params` are the policy's."""

    @property
    @abstractmethod
    def calls_per_step(self) -> float:
        """Calls from Python into the simulator for one step of all environments."""

    def save(self) -> dict[str, np.ndarray]:
        """Where its environments are now: with it, `restore` continues with the same future."""
        raise HeadraceError(f"the {self.rung} rung's environments cannot be saved")

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from what `save` gave, of the same environments on any rung of this kind."""
        raise HeadraceError(f"the {self.rung} rung's environments cannot be restored")

    def close(self) -> None:  # noqa: B027 - most rungs hold nothing but memory
        """Release what the rung holds besides memory."""

    def __enter__(self) -> Self:
        """The collector itself, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


STEPS = ("obs", "action", "reward", "terminated", "truncated", "mask", "to_play")
"""What `HostBuffers` keep of steps; `mask` and `to_play` only where there are such."""
ENDS = ("final_obs", "end_at", "episode_return", "episode_length", "final_mask", "final_to_play")
"""What they keep of episodes that ended, one row each."""


class HostBuffers:
    """The memory of a batch on the host: allocated once, written again and again.

    `obs`, `mask` and `to_play` have a row more than there are steps; row t + 1 is what follows step
    t, and after a batch the last row becomes the first. `zeros(shape, dtype)` gives the memory.
    """

    def __init__(self, request: Request, zeros: Callable[..., np.ndarray] = aligned.zeros):
        steps, num_envs = request.steps, request.num_envs
        obs, action = request.spec.observation_space, request.spec.action_space
        for what, space in (("observations", obs), ("actions", action)):
            if not isinstance(space, gymnasium.spaces.Box | gymnasium.spaces.Discrete):
                raise HeadraceError(
                    f"{request.spec.id}: {what} of {type(space).__name__} spaces are not "
                    "supported; wrap the environment so that they are Box or Discrete"
                )
        obs_shape, action_shape = obs.shape or (), action.shape or ()
        obs_dtype = np.float32 if obs.dtype == np.float64 else obs.dtype
        room = steps * num_envs
        self.obs = zeros((steps + 1, num_envs, *obs_shape), obs_dtype)
        self.action = zeros((steps, num_envs, *action_shape), action_dtype(action))
        self.reward = zeros((steps, num_envs), np.float32)
        self.terminated = zeros((steps, num_envs), np.bool_)
        self.truncated = zeros((steps, num_envs), np.bool_)
        self.final_obs = zeros((room, *obs_shape), obs_dtype)
        self.end_at = zeros((room, 2), np.int32)
        self.episode_return = zeros(room, np.float32)
        self.episode_length = zeros(room, np.int32)
        self.mask = self.final_mask = self.to_play = self.final_to_play = None
        if bits := request.spec.mask_bytes:
            self.mask = zeros((steps + 1, num_envs, bits), np.uint8)
            self.final_mask = zeros((room, bits), np.uint8)
        if request.spec.players > 1:
            self.to_play = zeros((steps + 1, num_envs), np.uint8)
            self.final_to_play = zeros(room, np.uint8)
        self.extras: dict[str, np.ndarray] = {}

    def columns(self, first: int, last: int) -> HostBuffers:
        """The part of environments `first` to `last - 1`, in the same memory.

        Ends of episodes have no columns: each part has a section of their rows to itself.
        """
        part = copy.copy(self)
        steps = len(self.reward)
        for name in STEPS:
            if (array := getattr(self, name)) is not None:
                setattr(part, name, array[:, first:last])
        for name in ENDS:
            if (array := getattr(self, name)) is not None:
                setattr(part, name, array[first * steps : last * steps])
        part.extras = {name: array[:, first:last] for name, array in self.extras.items()}
        return part

    def begin(self) -> None:
        """Start a batch: what was last is what comes first."""
        for rows in (self.obs, self.mask, self.to_play):
            if rows is not None:
                rows[0] = rows[-1]

    def mask_at(self, step: int) -> np.ndarray | None:
        """The mask that belongs to `obs[step]`, if there is one."""
        return None if self.mask is None else self.mask[step]

    def set_extras(self, step: int, extras: dict[str, Any]) -> None:
        """Keep the policy's own outputs of one step."""
        for name, value in extras.items():
            row = np.asarray(value)
            if name not in self.extras:
                shape = (len(self.reward), *row.shape)
                self.extras[name] = np.zeros(shape, row.dtype)
            self.extras[name][step] = row

    def append_ends(
        self, count: int, step: int, envs: Any, final_obs: Any, returns: Any, lengths: Any
    ) -> int:
        """Add one step's ended episodes behind `count` earlier ones; returns their number now."""
        rows = slice(count, count + len(envs))
        self.end_at[rows, 0] = step
        self.end_at[rows, 1] = envs
        self.final_obs[rows] = final_obs
        self.episode_return[rows] = returns
        self.episode_length[rows] = lengths
        return rows.stop

    def with_own_ends(self) -> HostBuffers:
        """The same memory, but for ends of episodes: `take_parts` puts them together elsewhere."""
        whole = copy.copy(self)
        for name in ENDS:
            if (array := getattr(self, name)) is not None:
                setattr(whole, name, np.zeros_like(array))
        return whole

    def take_ends(self, source: HostBuffers, rows: np.ndarray) -> int:
        """Take these of another's ended episodes in the order (step, environment)."""
        at = source.end_at[rows]
        rows = rows[np.lexsort((at[:, 1], at[:, 0]))]
        for name in ENDS:
            if (array := getattr(self, name)) is not None:
                array[: len(rows)] = getattr(source, name)[rows]
        return len(rows)

    def take_parts(
        self, source: HostBuffers, parts: Sequence[tuple[int, int]], counts: Sequence[int]
    ) -> int:
        """Take the ended episodes of all `parts` of `source` in the order (step, environment).

        A part, environments `first` to `last - 1`, has as many of them as `counts` says, in this
        order. Returns the number of all.
        """
        steps = len(self.reward)
        rows = np.concatenate(
            [
                np.arange(first * steps, first * steps + count)
                for (first, _), count in zip(parts, counts, strict=True)
            ]
        )
        rows = rows[np.argsort(source.end_at[rows, 0], kind="stable")]
        for name in ENDS:
            if (array := getattr(self, name)) is not None:
                out = array[: len(rows)]  # "clip": otherwise it would be written by way of a copy
                np.take(getattr(source, name), rows, axis=0, out=out, mode="clip")
        return len(rows)

    def batch(self, ends: int) -> Batch:
        """The batch that the buffers hold."""
        return Batch(
            obs=self.obs[:-1],
            last_obs=self.obs[-1],
            action=self.action,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            final_obs=self.final_obs[:ends],
            end_at=self.end_at[:ends],
            episode_return=self.episode_return[:ends],
            episode_length=self.episode_length[:ends],
            extras=self.extras,
            **self._turns(ends),
        )

    def _turns(self, ends: int) -> dict[str, np.ndarray]:
        """Masks and players, where there are such."""
        out = {}
        for name in ("mask", "to_play"):
            if (rows := getattr(self, name)) is not None:
                out |= {name: rows[:-1], f"last_{name}": rows[-1]}
                out[f"final_{name}"] = getattr(self, f"final_{name}")[:ends]
        return out


_WORDS_AHEAD = 256
"""Steps whose random words are made at once: for a few, that costs as much as for one."""


class HostPolicy:
    """A policy as the rungs on the host call it: NumPy arrays in and out."""

    def __init__(self, request: Request):
        self._request = request
        self._numpy = namespace("numpy")
        self._who = identify(self._numpy, request.num_envs, request.seed, request.first_env)
        self._apply = None
        if isinstance(request.policy, Policy):
            self._apply = request.policy.apply
            if request.policy.namespace == "jax":
                import jax

                self._apply = jax.jit(request.policy.apply)
        self.outputs_known = self._apply is None
        """Whether it need not be asked any more what its own outputs are: random has none."""
        self._dtype = action_dtype(request.spec.action_space)
        self._words, self._words_from = np.zeros((0, request.num_envs), np.uint32), 0

    @property
    def random(self) -> bool:
        """Whether actions do not depend on observations, and `draw` gives them."""
        return self._apply is None and not self._request.spec.masked

    def draw(self, clock: int, steps: int) -> np.ndarray:
        """Uniform random actions [steps, N, ...], the same on every rung."""
        space = self._request.spec.action_space
        actions = random_actions(self._numpy, space, self._who, clock, steps)
        if isinstance(space, gymnasium.spaces.Discrete) and space.start:
            return (actions.astype(np.int64) + space.start).astype(self._dtype)
        return actions.astype(self._dtype, copy=False)

    def act(
        self, params: Any, obs: np.ndarray, clock: int, mask: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Actions for one step, and the policy's own outputs."""
        if self._apply is None:
            assert mask is not None
            action = random_legal(self._numpy, self._legal_words(clock), mask).astype(np.int64)
            space = self._request.spec.action_space
            assert isinstance(space, gymnasium.spaces.Discrete)
            return (action + space.start).astype(self._dtype), {}
        key = PolicyKey(Identity(*self._who), np.uint32(clock & 0xFFFFFFFF))
        action, extras = self._apply(params, obs, mask, key)
        return np.asarray(action).astype(self._dtype, copy=False), extras

    def words(self, clock: int, steps: int) -> np.ndarray:
        """What chooses among legal actions: random words [steps, N], the same on every rung."""
        return legal_words(self._numpy, self._who, clock, steps)

    def _legal_words(self, clock: int) -> np.ndarray:
        """The random words [N] of one step."""
        if not 0 <= clock - self._words_from < len(self._words):
            self._words = self.words(clock, _WORDS_AHEAD)
            self._words_from = clock
        return self._words[clock - self._words_from]
