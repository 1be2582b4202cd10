# SPDX-License-Identifier: Apache-2.0
"""A worker's part of a `ProcessVectorEnv`."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from headrace.collect.gym_envs import as_actions, blame, make_envs
from headrace.collect.shared_arrays import SharedArrays
from headrace.envs.spec import EnvSpec

RESET, STEP, CALL, SET = b"R", b"s", b"C", b"S"

Infos = list[tuple[int, dict[str, Any]]]
"""Infos of single environments that are not empty, in the order in which they came to be."""


@dataclass(frozen=True)
class Refusal:
    """What an environment raised when it was called by name: the caller's mistake, not its end."""

    text: str


class VectorArrays:
    """The memory that all workers and their owner share."""

    def __init__(self, spec: EnvSpec, num_envs: int, zeros: Callable[..., np.ndarray]):
        obs, action = spec.observation_space, spec.action_space
        self.obs = zeros((num_envs, *(obs.shape or ())), obs.dtype)
        self.action = zeros((num_envs, *(action.shape or ())), action.dtype)
        self.reward = zeros(num_envs, np.float64)
        self.terminated = zeros(num_envs, np.bool_)
        self.truncated = zeros(num_envs, np.bool_)


@dataclass(frozen=True)
class VectorShare:
    """What a worker is started with: all environments, and which are its own."""

    spec: EnvSpec
    num_envs: int
    autoreset: AutoresetMode
    first: int
    last: int

    def __call__(self, memory: SharedArrays) -> VectorJob:
        """Make the environments."""
        return VectorJob(self, memory)


class VectorJob:
    """Steps, resets and calls environments `first` to `last - 1`."""

    def __init__(self, share: VectorShare, memory: SharedArrays):
        self._share = share
        arrays = VectorArrays(share.spec, share.num_envs, memory.zeros)
        own = slice(share.first, share.last)
        self._obs, self._action, self._reward = (
            arrays.obs[own],
            arrays.action[own],
            arrays.reward[own],
        )
        self._terminated, self._truncated = arrays.terminated[own], arrays.truncated[own]
        count = share.last - share.first
        self._envs, self._closing = make_envs(share.spec, count)
        self._limit = share.spec.max_episode_steps or sys.maxsize
        self._elapsed = [0] * count
        self._ended = [False] * count
        self.actions = {RESET: self._reset, STEP: self._step, CALL: self._call, SET: self._set}
        self.close = self._closing.close

    def introduce(self) -> tuple[dict[str, Any], str | None]:
        """The metadata of the environments, and how they draw."""
        return dict(self._envs[0].metadata), self._envs[0].render_mode

    def _reset(self, work: tuple[list[int | None], Any, np.ndarray | None]) -> Infos | None:
        seeds, options, mask = work
        infos: Infos = []
        for i in range(len(self._envs)):
            if mask is not None and not mask[i]:
                continue
            try:
                self._obs[i], info = self._begin(i, seed=seeds[i], options=options)
            except Exception as error:
                blame(error, self._share.spec, self._share.first + i)
                raise
            self._terminated[i] = self._truncated[i] = False
            if info:
                infos.append((self._share.first + i, info))
        return infos or None

    def _step(self, _: None) -> Infos | None:
        infos: Infos = []
        results = []
        first, limit, ended, elapsed = self._share.first, self._limit, self._ended, self._elapsed
        next_step = self._share.autoreset is AutoresetMode.NEXT_STEP
        same_step = self._share.autoreset is AutoresetMode.SAME_STEP
        # A copy, since environments may keep their actions.
        actions = as_actions(self._action.copy())
        i = 0
        try:
            for i, (env, action) in enumerate(zip(self._envs, actions, strict=True)):
                if next_step and ended[i]:
                    obs, info = self._begin(i)
                    results.append((0.0, False, False))
                else:
                    obs, reward, terminated, truncated, info = env.step(action)
                    elapsed[i] += 1
                    truncated = truncated or elapsed[i] >= limit
                    results.append((reward, terminated, truncated))
                    ended[i] = terminated or truncated
                    if same_step and ended[i]:
                        last = obs.copy() if isinstance(obs, np.ndarray) else obs
                        infos.append((first + i, {"final_obs": last, "final_info": info}))
                        obs, info = self._begin(i)
                self._obs[i] = obs
                if info:
                    infos.append((first + i, info))
        except Exception as error:
            blame(error, self._share.spec, first + i)
            raise
        self._reward[...], self._terminated[...], self._truncated[...] = zip(*results, strict=True)
        return infos or None

    def _begin(self, i: int, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        self._elapsed[i] = 0
        self._ended[i] = False
        return self._envs[i].reset(**arguments)

    def _call(self, work: tuple[str, tuple[Any, ...], dict[str, Any]]) -> list[Any] | Refusal:
        name, positional, named = work

        def call(env: gymnasium.Env) -> Any:
            found = env.get_wrapper_attr(name)
            return found(*positional, **named) if callable(found) else found

        return _each(call, self._envs)

    def _set(self, work: tuple[str, list[Any]]) -> list[Any] | Refusal:
        name, values = work
        return _each(lambda env, value: env.set_wrapper_attr(name, value), self._envs, values)


def _each(act: Callable[..., Any], *columns: list[Any]) -> list[Any] | Refusal:
    try:
        results = [act(*row) for row in zip(*columns, strict=True)]
        pickle.dumps(results)
    except Exception as error:
        return Refusal(f"{type(error).__name__}: {error}")
    return results
