# SPDX-License-Identifier: Apache-2.0
"""What an array environment must provide, and what is done once for all of them.

An environment says how one step changes its fields, elementwise. Time limits, auto-reset, episode
statistics and randomness are here: `reset` and `step` below are the array form of the native kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.philox import Identity, ResetDraws, identify

State = TypeVar("State", bound=tuple)


class ArrayEnv(ABC, Generic[State]):
    """Pure functions over arrays: `ns.xp` is NumPy, torch or `jax.numpy`.

    `State` is a NamedTuple of fields, one value for each environment; a field may have trailing event
    axes, which a step reduces only with `sum_events`. No axis is named and no Python branch depends
    on a value, so that one text serves a single environment, a batch of any shape and a kernel.
    """

    observation_space: gymnasium.spaces.Box
    action_space: gymnasium.spaces.Discrete | gymnasium.spaces.Box
    version: ClassVar[int] = 1

    @abstractmethod
    def reset(self, ns: Namespace, draws: ResetDraws) -> State:
        """A first state, from draws in a fixed order."""

    @abstractmethod
    def step(self, ns: Namespace, state: State, action: Array) -> tuple[State, Array, Array]:
        """The next state, the reward (float32) and whether the episode terminated (a mask).

        A discrete action is an integer for each environment; a Box action of n components is a tuple
        of n arrays.
        """

    @abstractmethod
    def observe(self, ns: Namespace, state: State) -> tuple[Array, ...]:
        """The components of the observation, float32 each."""


def sum_events(ns: Namespace, field: Array) -> Array:
    """The sum over a field's trailing event axis, in the field's own dtype."""
    return ns.xp.sum(field, axis=-1, dtype=field.dtype)


class VecState(NamedTuple):
    """Environments with their bookkeeping; the fields are those of the native core."""

    env: Any
    elapsed: Array  # int32
    episode: Array  # words
    episode_return: Array  # float32
    pending: Array  # bool: ended, and the next step is to reset it
    who: Identity


class Step(NamedTuple):
    """What one step of a batch gives; `next_obs` is before any reset, `obs` after."""

    obs: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_obs: Array
    episode_return: Array  # 0 where no episode ended
    episode_length: Array


def observation(ns: Namespace, env: ArrayEnv[Any], state: Any) -> Array:
    """The observation as one array, its components on the last axis."""
    return ns.xp.stack(env.observe(ns, state), axis=-1)


def init(
    ns: Namespace, env: ArrayEnv[Any], num_envs: int, seed: int, first_env: int = 0
) -> tuple[VecState, Array]:
    """Fresh environments, reset, and their first observations."""
    who = identify(ns, num_envs, seed, first_env)
    episode = who.index ^ who.index
    state = VecState(
        env=env.reset(ns, ResetDraws(ns, who, episode)),
        elapsed=ns.xp.zeros(num_envs, dtype=ns.xp.int32),
        episode=episode + 1,
        episode_return=ns.xp.zeros(num_envs, dtype=ns.xp.float32),
        pending=ns.xp.zeros(num_envs, dtype=ns.xp.bool),
        who=who,
    )
    return state, observation(ns, env, state.env)


def reset(
    ns: Namespace, env: ArrayEnv[Any], state: VecState, obs: Array, mask: Array
) -> tuple[VecState, Array]:
    """New episodes where `mask` is set; `obs` keeps the rows of the others."""

    def make(rows: Any) -> tuple[VecState, Array]:
        who = ns.map(rows, state.who)
        episode = rows(state.episode)
        fresh = env.reset(ns, ResetDraws(ns, who, episode))
        zero = rows(state.elapsed) * 0
        book = VecState(fresh, zero, episode + 1, ns.to_float(zero), zero != 0, who)
        return book, observation(ns, env, fresh)

    return ns.replace(mask, make, (state, obs))


def step(
    ns: Namespace,
    env: ArrayEnv[Any],
    state: VecState,
    action: Array,
    max_steps: int | None,
    autoreset: str = "same_step",
) -> tuple[VecState, Step]:
    """One step of every environment; `autoreset` is "same_step", "next_step" or "disabled"."""
    xp = ns.xp
    if isinstance(env.action_space, gymnasium.spaces.Box):
        action = tuple(action[..., c] for c in range(action.shape[-1]))
    stepped, reward, terminated = env.step(ns, state.env, action)
    elapsed = state.elapsed + 1
    truncated = elapsed >= (max_steps or np.iinfo(np.int32).max)
    waiting = state.pending
    if autoreset == "next_step":  # a pending reset is not a step
        reward = xp.where(waiting, 0 * reward, reward)
        terminated, truncated = terminated & ~waiting, truncated & ~waiting
    total = state.episode_return + reward
    ended = terminated | truncated
    next_obs = observation(ns, env, stepped)
    after = VecState(
        stepped, elapsed, state.episode, total,
        ended if autoreset == "next_step" else waiting, state.who,
    )
    obs = next_obs
    if autoreset == "same_step":
        after, obs = reset(ns, env, after, next_obs, ended)
    elif autoreset == "next_step":
        after, obs = reset(ns, env, after, next_obs, waiting)
    return after, Step(
        obs, reward, terminated, truncated, next_obs,
        xp.where(ended, total, 0 * total), xp.where(ended, elapsed, 0 * elapsed),
    )
