# SPDX-License-Identifier: Apache-2.0
"""The array definition behind Gymnasium's vector interface, by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.envs.array.base import init, observation, reset, step
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import Identity
from headrace.envs.spec import EnvSpec
from headrace.envs.vector.arguments import checked_actions
from headrace.envs.vector.base import Array, HostVectorEnv, Mask


class ArrayVectorEnv(HostVectorEnv):
    """NumPy environments: some dozens of array operations a step."""

    definition = "array"

    def __init__(self, spec: EnvSpec, num_envs: int, **common: Any):
        super().__init__(spec, num_envs, **common)
        self._ns = namespace("numpy")
        self._env = spec.make_array()
        self.tag = f"{spec.id}/array/{self._env.version}"
        self._state, self._next_obs = init(self._ns, self._env, num_envs, 0)
        self._mode = self.autoreset_mode.name.lower()

    def _take_step(self, actions: Any) -> int:
        actions = checked_actions(self.env_spec, self.num_envs, actions)
        limit = self.env_spec.max_episode_steps
        self._state, out = step(self._ns, self._env, self._state, actions, limit, self._mode)
        self._next_obs = out.next_obs
        self._observation[...] = out.obs
        self._reward[...] = out.reward
        self._terminated[...] = out.terminated
        self._truncated[...] = out.truncated
        if self._mode == "next_step":
            return 0
        return int(np.count_nonzero(self._terminated | self._truncated))

    def _seed(self, seed: int | list[int], mask: Mask | None) -> None:
        where = slice(None) if mask is None else mask
        shared = isinstance(seed, int)
        index = np.arange(self.num_envs, dtype=np.uint32) + np.uint32(self._first_env)
        seeds = np.broadcast_to(np.array(seed, np.uint64), (self.num_envs,))
        given = Identity(
            index if shared else 0 * index,
            (seeds & np.uint64(0xFFFFFFFF)).astype(np.uint32),
            (seeds >> np.uint64(32)).astype(np.uint32),
        )
        who = self._ns.map(np.copy, self._state.who)
        episode = self._state.episode.copy()
        episode[where] = 0
        for words, new in zip(who, given, strict=True):
            words[where] = new[where]
        self._state = self._state._replace(who=who, episode=episode)

    def _begin(self, mask: Mask | None) -> None:
        chosen = np.ones(self.num_envs, np.bool_) if mask is None else mask
        current = observation(self._ns, self._env, self._state.env)
        self._state, self._observation[...] = reset(
            self._ns, self._env, self._state, current, chosen
        )

    def _pending(self) -> Array:
        return self._state.pending

    def _final_observations(self, count: int) -> tuple[Array, Array]:
        (envs,) = (self._terminated | self._truncated).nonzero()
        return envs, self._next_obs[envs]

    def _arrays(self) -> list[Array]:
        leaves: list[Array] = []
        self._ns.map(leaves.append, self._state)
        return leaves

    def _restore(self, arrays: list[Array]) -> None:
        rest = iter(arrays)
        self._state = self._ns.map(lambda _: next(rest).copy(), self._state)
        self._observation[...] = observation(self._ns, self._env, self._state.env)
