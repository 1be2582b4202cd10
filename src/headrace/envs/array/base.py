# SPDX-License-Identifier: Apache-2.0
"""What an array environment must provide, and what is done once for all of them.

An environment says how one step changes its fields, elementwise. Time limits, auto-reset, episode
statistics and randomness are here: `reset` and `step` below are the array form of the native
kernels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace, Rows
from headrace.envs.philox import Identity, ResetDraws, identify

State = TypeVar("State", bound=tuple)


class ArrayEnv(ABC, Generic[State]):
    """Pure functions over arrays: `ns.xp` is NumPy, torch or `jax.numpy`.

    `State` is a NamedTuple of fields, one value for each environment; a field may have trailing
    event axes, which a step reduces only with `sum_events`. No axis is named and no Python branch
    depends on a value, so that one text serves a single environment, a batch of any shape and a
    kernel.
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

        A discrete action is an integer for each environment; a Box action of n components is a
        tuple of n arrays.
        """

    @abstractmethod
    def observe(self, ns: Namespace, state: State) -> tuple[Array, ...]:
        """The components of the observation, float32 each."""


def sum_events(ns: Namespace, field: Array) -> Array:
    """The sum over a field's trailing event axis, in the field's own dtype."""
    return ns.xp.sum(field, axis=-1, dtype=field.dtype)


class Ahead(NamedTuple):
    """First states of the next episodes, drawn for many environments at a time, before they end.

    A draw costs more than a step, and a step that any episode ends in would pay it for all rows
    where rows cannot be picked, or in many small calls where they can.
    """

    env: Any
    used: Array  # bool: the state is that of an episode that has begun


class VecState(NamedTuple):
    """Environments with their bookkeeping; all but `ahead` is what the native core keeps."""

    env: Any
    elapsed: Array  # int32
    episode: Array  # words
    episode_return: Array  # float32
    pending: Array  # bool: ended, and the next step is to reset it
    who: Identity
    ahead: Ahead


class Step(NamedTuple):
    """What one step of a batch gives; `next_obs` is before any reset, `obs` after."""

    obs: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_obs: Array
    episode_return: Array  # 0 where no episode ended
    episode_length: Array
    mask: Array | None = None  # legal actions as bits, where the environment has such
    next_mask: Array | None = None
    to_play: Array | None = None  # whose turn it is, where several play
    next_to_play: Array | None = None


def observation(ns: Namespace, env: ArrayEnv[Any], state: Any) -> Array:
    """The observation as one array, its components on the last axis."""
    return ns.xp.stack(env.observe(ns, state), axis=-1)


def init(
    ns: Namespace, env: ArrayEnv[Any], num_envs: int, seed: int, first_env: int = 0
) -> tuple[VecState, Array]:
    """Fresh environments, reset, and their first observations."""
    return start(ns, env, identify(ns, num_envs, seed, first_env))


def start(ns: Namespace, env: ArrayEnv[Any], who: Identity) -> tuple[VecState, Array]:
    """The same for environments of given identities."""
    zero = who.index ^ who.index
    first = env.reset(ns, ResetDraws(ns, who, zero))
    state = VecState(
        env=first,
        elapsed=ns.xp.astype(zero, ns.xp.int32),
        episode=zero + 1,
        episode_return=ns.to_float(zero),
        pending=zero != 0,
        who=who,
        ahead=Ahead(first, zero == 0),
    )
    return state, observation(ns, env, first)


def reset(
    ns: Namespace, env: ArrayEnv[Any], state: VecState, obs: Array, mask: Array
) -> tuple[VecState, Array]:
    """New episodes where `mask` is set; `obs` keeps the rows of the others.

    There, `who` and `episode` may have been changed since the last step.
    """
    stale = Ahead(state.ahead.env, state.ahead.used | mask)
    state = state._replace(pending=state.pending & ~mask, ahead=stale)
    return _begin_episodes(ns, env, state, obs, mask)


def _begin_episodes(
    ns: Namespace, env: ArrayEnv[Any], state: VecState, obs: Array, mask: Array
) -> tuple[VecState, Array]:
    """New episodes where `mask` is set, from first states drawn ahead, or now if they are not."""

    def begun() -> tuple[Any, Ahead]:
        ahead = ns.when_any(
            mask & state.ahead.used, lambda: _draw_ahead(ns, env, state), state.ahead
        )

        def make(rows: Rows) -> tuple[Any, ...]:
            first, zero = ns.map(rows, ahead.env), rows(state.elapsed) * 0
            episode = rows(state.episode) + 1
            return first, zero, episode, ns.to_float(zero), observation(ns, env, first)

        return ns.replace(mask, make, current), Ahead(ahead.env, ahead.used | mask)

    current = (state.env, state.elapsed, state.episode, state.episode_return, obs)
    (now, elapsed, episode, total, obs), ahead = ns.when_any(mask, begun, (current, state.ahead))
    after = VecState(now, elapsed, episode, total, state.pending, state.who, ahead)
    return after, obs


def _draw_ahead(ns: Namespace, env: ArrayEnv[Any], state: VecState) -> Ahead:
    """First states for the episodes that have not begun, where those at hand are used up."""

    def make(rows: Rows) -> tuple[Any, Array]:
        draws = ResetDraws(ns, ns.map(rows, state.who), rows(state.episode))
        return Ahead(env.reset(ns, draws), rows(state.ahead.used) & False)

    return ns.replace(state.ahead.used, make, state.ahead)


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
    pending = ended if autoreset == "next_step" else waiting
    after = VecState(stepped, elapsed, state.episode, total, pending, state.who, state.ahead)
    obs = next_obs
    if autoreset != "disabled":
        due = ended if autoreset == "same_step" else waiting
        after, obs = _begin_episodes(ns, env, after, next_obs, due)
    returns, lengths = xp.where(ended, total, 0 * total), xp.where(ended, elapsed, 0 * elapsed)
    return after, Step(obs, reward, terminated, truncated, next_obs, returns, lengths)
