# SPDX-License-Identifier: Apache-2.0
"""The `numpy` rung: the array definition, vectorised with NumPy."""

from __future__ import annotations

from typing import Any

from headrace.collect.base import Collector, HostBuffers, HostPolicy, Request
from headrace.collect.batch import Batch
from headrace.envs.array.base import init, step
from headrace.envs.array.namespace import namespace


class NumPyCollector(Collector):
    """NumPy, some dozens of array operations a step."""

    rung = "numpy"
    definition = "array"

    def __init__(self, request: Request):
        super().__init__(request)
        self._ns = namespace("numpy")
        self._env = self.spec.make_array()
        self._buffers = HostBuffers(request)
        self._policy = HostPolicy(request)
        self.state, self._buffers.obs[-1] = init(
            self._ns, self._env, request.num_envs, request.seed, request.first_env
        )

    def collect(self, params: Any = None) -> Batch:
        """Step by step."""
        buffers, steps = self._buffers, self.request.steps
        buffers.begin()
        if self._policy.random:
            buffers.action[...] = self._policy.draw(self.clock, steps)
        ends = 0
        for t in range(steps):
            if not self._policy.random:
                action, extras = self._policy.act(params, buffers.obs[t], self.clock + t)
                buffers.action[t] = action
                buffers.set_extras(t, extras)
            self.state, out = step(
                self._ns, self._env, self.state, buffers.action[t], self.spec.max_episode_steps
            )
            buffers.obs[t + 1] = out.obs
            buffers.reward[t] = out.reward
            buffers.terminated[t] = out.terminated
            buffers.truncated[t] = out.truncated
            (who,) = (out.terminated | out.truncated).nonzero()
            if len(who):
                ends = buffers.append_ends(
                    ends, t, who, out.next_obs[who], out.episode_return[who],
                    out.episode_length[who],
                )
        self.clock += steps
        return buffers.batch(ends)

    @property
    def calls_per_step(self) -> float:
        """Counted by the ladder: every array operation is a call."""
        return float("nan")
