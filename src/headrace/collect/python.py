# SPDX-License-Identifier: Apache-2.0
"""The `python` rung: Gymnasium environments in a Python loop."""

from __future__ import annotations

from typing import Any

from headrace.collect.base import Collector, HostBuffers, Request
from headrace.collect.batch import Batch
from headrace.collect.gym_envs import GymSampler
from headrace.errors import HeadraceError


class PythonCollector(Collector):
    """One process, one environment after another.

    What an environment raises comes through, after all of them have been closed.
    """

    rung = "python"
    definition = "gym"

    def __init__(self, request: Request):
        super().__init__(request)
        self._buffers = HostBuffers(request)
        self._sampler = GymSampler(request, self._buffers)
        self._closed = False

    def collect(self, params: Any = None) -> Batch:
        """Step by step."""
        if self._closed:
            raise HeadraceError("this collector is closed; make a new one")
        try:
            ends = self._sampler.collect(params)
        except BaseException:
            self.close()
            raise
        self.clock += self.request.steps
        return self._buffers.batch(ends)

    @property
    def calls_per_step(self) -> float:
        """One for each environment."""
        return self.request.num_envs

    def close(self) -> None:
        """Close the environments."""
        self._closed = True
        self._sampler.close()
