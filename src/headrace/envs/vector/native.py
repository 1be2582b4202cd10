# SPDX-License-Identifier: Apache-2.0
"""The native definition behind Gymnasium's vector interface: one call into C++ a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from headrace.envs.native import Autoreset, BoundRollout, max_threads
from headrace.envs.spec import EnvSpec
from headrace.envs.vector.base import Array, HostVectorEnv, Mask


class NativeVectorEnv(HostVectorEnv):
    """C++ environments; integers and float32 components are taken as they are.

    Observations come in the environment's own dtype, without a copy more than was asked for, or
    converted to float32.
    """

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
        # What the kernel writes: the observations themselves, unless they are wanted otherwise.
        own = np.dtype(self.native.kernel.observation_dtype)
        self._converts = self._observation.dtype != own
        self._seen = np.zeros_like(self._observation, own) if self._converts else self._observation
        self._final = np.zeros_like(self._seen)
        bits = spec.mask_bytes
        self._mask = np.zeros((num_envs, bits), np.uint8) if bits else None
        self._final_mask = np.zeros_like(self._mask) if bits else None
        self._to_play = np.zeros(num_envs, np.uint8) if spec.players > 1 else None
        self._final_to_play = None if self._to_play is None else np.zeros_like(self._to_play)
        step = self._bind(threads or max_threads()).step
        self._take_step = self._convert_after(step) if self._converts else step

    def _bind(self, threads: int) -> BoundRollout:
        ends = {}
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            ends = {
                "final_observation": self._final,
                "ended_at": self._ended_at,
                "episode_return": np.zeros(self.num_envs, np.float32),
                "episode_length": np.zeros(self.num_envs, np.int32),
                "final_mask": self._final_mask,
                "final_to_play": self._final_to_play,
            }
        return BoundRollout(
            self.native.kernel,
            state=self._state,
            observation=self._seen[None],
            reward=self._reward[None],
            terminated=self._terminated[None],
            truncated=self._truncated[None],
            mask=None if self._mask is None else self._mask[None],
            to_play=None if self._to_play is None else self._to_play[None],
            autoreset=getattr(Autoreset, self.autoreset_mode.name),
            max_episode_steps=self.env_spec.max_episode_steps or 0,
            threads=threads,
            **ends,
        )

    def _seed(self, seed: int | list[int], mask: Mask | None) -> None:
        self.native.seed(self._state, seed, self._first_env, mask)

    def _begin(self, mask: Mask | None) -> None:
        self._look(mask)
        self._pending()[slice(None) if mask is None else mask] = 0

    def _pending(self) -> Array:
        return self.native.pending(self._state)

    def _final_observations(self, count: int) -> tuple[Array, Array]:
        envs, final = self._ended_at[:count, 1], self._final[:count]
        return envs, final.astype(self._observation.dtype)  # which copies

    def infos(self) -> dict[str, Any]:
        """Masks and players, where there are such; copies."""
        infos = {}
        if self._mask is not None:
            infos |= {"action_mask": self._unpacked(self._mask), "_action_mask": self._everyone()}
        if self._to_play is not None:
            infos |= {"to_play": self._to_play.copy(), "_to_play": self._everyone()}
        return infos

    def _final_infos(self, envs: Array, ended: Mask) -> dict[str, Any]:
        infos = {}
        if self._mask is not None:
            assert self._final_mask is not None
            masks = np.zeros_like(self._mask)
            masks[envs] = self._final_mask[: len(envs)]
            infos |= {"action_mask": self._unpacked(masks), "_action_mask": ended.copy()}
        if self._to_play is not None:
            assert self._final_to_play is not None
            players = np.zeros_like(self._to_play)
            players[envs] = self._final_to_play[: len(envs)]
            infos |= {"to_play": players, "_to_play": ended.copy()}
        return infos

    def _unpacked(self, masks: Array) -> Array:
        count = self.native.kernel.action_size
        return np.unpackbits(masks, axis=1, count=count, bitorder="little").view(np.int8)

    def _everyone(self) -> Mask:
        return np.ones(self.num_envs, np.bool_)

    def _look(self, where: Mask | None) -> None:
        """Reset where it says, and write what there is to see of all."""
        kernel = self.native.kernel
        kernel.reset(self._state, self._seen, where, mask=self._mask, to_play=self._to_play)
        if self._converts:
            self._observation[...] = self._seen

    def _convert_after(self, take_step: Callable[..., int]) -> Callable[..., int]:
        def step(actions: Any) -> int:
            ended = take_step(actions)
            self._observation[...] = self._seen
            return ended

        return step

    def _arrays(self) -> list[Array]:
        return [self._state]

    def _restore(self, arrays: list[Array]) -> None:
        self._state[...] = arrays[0]
        self._look(np.zeros(self.num_envs, np.bool_))
