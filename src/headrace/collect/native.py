# SPDX-License-Identifier: Apache-2.0
"""The `native` and `openmp` rungs: one call into C++ a step, on one thread or on all."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.collect.base import Collector, HostBuffers, HostPolicy, Request
from headrace.collect.batch import Batch
from headrace.envs.native import Autoreset, BoundRollout, NativeDefinition, max_threads
from headrace.errors import HeadraceError


class NativeCollector(Collector):
    """C++, one call a step, one thread."""

    rung = "native"
    definition = "native"
    default_threads: int | None = 1

    def __init__(self, request: Request, buffers: HostBuffers | None = None):
        """`buffers`: where to write, for instance columns of a larger batch's."""
        super().__init__(request)
        self.native = self.spec.make_native()
        self.state = self.native.make_state(request.num_envs, request.seed, request.first_env)
        self._buffers = HostBuffers(request) if buffers is None else buffers
        self._policy = HostPolicy(request)
        self._reset()
        self._bound = self._bind()

    def _reset(self, where: np.ndarray | None = None) -> None:
        """Begin new episodes, all or where it is set; shows all environments as they are then."""
        buffers = self._buffers
        self.native.kernel.reset(
            self.state,
            buffers.obs[-1],
            where,
            mask=buffers.mask_at(-1),
            to_play=None if buffers.to_play is None else buffers.to_play[-1],
        )

    def _bind(self) -> BoundRollout:
        buffers = self._buffers
        return BoundRollout(
            self.native.kernel,
            state=self.state,
            observation=buffers.obs[1:],
            reward=buffers.reward,
            terminated=buffers.terminated,
            truncated=buffers.truncated,
            final_observation=buffers.final_obs,
            ended_at=buffers.end_at,
            episode_return=buffers.episode_return,
            episode_length=buffers.episode_length,
            drawn=buffers.action,
            mask=None if buffers.mask is None else buffers.mask[1:],
            final_mask=buffers.final_mask,
            to_play=None if buffers.to_play is None else buffers.to_play[1:],
            final_to_play=buffers.final_to_play,
            autoreset=Autoreset.SAME_STEP,
            max_episode_steps=self.spec.max_episode_steps or 0,
            threads=self.request.threads or self.default_threads or max_threads(),
        )

    def collect(self, params: Any = None) -> Batch:
        """Step by step."""
        buffers, run = self._buffers, self._bound.run
        buffers.begin()
        ends = 0
        for step in range(self.request.steps):
            if self.request.policy == "random":
                ends = run(step, 1, ends, clock=self.clock + step)
            else:
                obs = buffers.obs[step]
                mask = buffers.mask_at(step)
                action, extras = self._policy.act(params, obs, self.clock + step, mask)
                buffers.action[step] = action
                buffers.set_extras(step, extras)
                ends = run(step, 1, ends, buffers.action[step])
        self.clock += self.request.steps
        return buffers.batch(ends)

    def save(self) -> dict[str, np.ndarray]:
        """The states, with what their bytes mean, and the clock."""
        return save_native(self.native, self.state, self.clock)

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Take the states, and observe them."""
        self.clock = restore_native(self.native, self.state, saved)
        self._reset(np.zeros(self.request.num_envs, np.bool_))

    @property
    def calls_per_step(self) -> float:
        """One."""
        return 1.0


def save_native(native: NativeDefinition, state: np.ndarray, clock: int) -> dict[str, np.ndarray]:
    """What any rung of a native environment saves."""
    tag = np.frombuffer(native.tag.encode(), np.uint8)
    return {"tag": tag, "state": state.copy(), "clock": np.array(clock, np.uint64)}


def restore_native(
    native: NativeDefinition, state: np.ndarray, saved: dict[str, np.ndarray]
) -> int:
    """Fill `state` from what was saved; returns the clock. Raises where it is of another kind."""
    tag = bytes(saved["tag"]).decode(errors="replace") if "tag" in saved else "nothing native"
    if tag != native.tag:
        raise HeadraceError(f"the saved states are of {tag}; these environments are {native.tag}")
    if saved["state"].shape != state.shape or saved["state"].dtype != state.dtype:
        raise HeadraceError(
            f"the saved states have shape {saved['state'].shape}; here they have {state.shape}"
        )
    state[...] = saved["state"]
    return int(saved["clock"])


class OpenMpCollector(NativeCollector):
    """C++, one call a step, all threads."""

    rung = "openmp"
    default_threads = None
