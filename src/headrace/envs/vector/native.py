# SPDX-License-Identifier: Apache-2.0
"""The native definition behind Gymnasium's vector interface: one call into C++ a step."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from headrace.envs.native import Autoreset, BoundRollout, max_threads
from headrace.envs.spec import EnvSpec
from headrace.envs.vector.base import Array, HostVectorEnv, Mask


class NativeVectorEnv(HostVectorEnv):
    """C++ environments; int64 or uint8 choices and float32 components are taken as they are."""

    definition = "native"

    def __init__(
        self,
        spec: EnvSpec,
        num_envs: int,
        *,
        threads: int | None = None,
        isa: str | None = None,
        **common: Any,
    ):
        super().__init__(spec, num_envs, **common)
        self.native = spec.make_native(isa)
        self.tag = self.native.tag
        self._state = self.native.make_state(num_envs)
        self._ended_at = np.zeros((num_envs, 2), np.int32)
        self._final = np.zeros_like(self._observation)
        self._take_step = self._bind(threads or max_threads()).step

    def _bind(self, threads: int) -> BoundRollout:
        ends = {}
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            ends = {
                "final_observation": self._final,
                "ended_at": self._ended_at,
                "episode_return": np.zeros(self.num_envs, np.float32),
                "episode_length": np.zeros(self.num_envs, np.int32),
            }
        return BoundRollout(
            self.native.kernel,
            state=self._state,
            observation=self._observation[None],
            reward=self._reward[None],
            terminated=self._terminated[None],
            truncated=self._truncated[None],
            autoreset=getattr(Autoreset, self.autoreset_mode.name),
            max_episode_steps=self.env_spec.max_episode_steps or 0,
            threads=threads,
            **ends,
        )

    def _seed(self, seed: int | list[int], mask: Mask | None) -> None:
        self.native.seed(self._state, seed, self._first_env, mask)

    def _begin(self, mask: Mask | None) -> None:
        self.native.kernel.reset(self._state, self._observation, mask)
        self._pending()[slice(None) if mask is None else mask] = 0

    def _pending(self) -> Array:
        return self.native.pending(self._state)

    def _final_observations(self, count: int) -> tuple[Array, Array]:
        return self._ended_at[:count, 1], self._final[:count].copy()

    def _arrays(self) -> list[Array]:
        return [self._state]

    def _restore(self, arrays: list[Array]) -> None:
        self._state[...] = arrays[0]
        self.native.kernel.reset(self._state, self._observation, np.zeros(self.num_envs, np.bool_))
