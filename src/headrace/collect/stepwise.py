# SPDX-License-Identifier: Apache-2.0
"""What the rungs that step an array environment from Python share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from headrace.collect.base import Collector, HostBuffers, HostPolicy, Request
from headrace.collect.batch import Batch
from headrace.envs.array.base import Step


class StepwiseCollector(Collector):
    """One step of all environments at a time, written to the host's memory."""

    definition = "array"

    def __init__(self, request: Request):
        super().__init__(request)
        self._env = self.spec.make_array()
        self._buffers = HostBuffers(request)
        self._policy = HostPolicy(request)

    def collect(self, params: Any = None) -> Batch:
        """Step by step."""
        buffers, steps = self._buffers, self.request.steps
        buffers.begin()
        if self._policy.random:
            buffers.action[...] = self._policy.draw(self.clock, steps)
        ends = 0
        for t in range(steps):
            out = self._advance(params, t)
            buffers.obs[t + 1] = out.obs
            buffers.reward[t] = out.reward
            buffers.terminated[t] = out.terminated
            buffers.truncated[t] = out.truncated
            (who,) = np.nonzero(np.logical_or(out.terminated, out.truncated))
            if len(who):
                returns, lengths = out.episode_return[who], out.episode_length[who]
                ends = buffers.append_ends(ends, t, who, out.next_obs[who], returns, lengths)
        self.clock += steps
        return buffers.batch(ends)

    def _advance(self, params: Any, t: int) -> Step:
        """Act and step."""
        buffers = self._buffers
        if not self._policy.random:
            action, extras = self._policy.act(params, buffers.obs[t], self.clock + t)
            buffers.action[t] = action
            buffers.set_extras(t, extras)
        return self._step(buffers.action[t])

    @abstractmethod
    def _step(self, action: Any) -> Step:
        """One step of all environments; NumPy arrays in and out."""
