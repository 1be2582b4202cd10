# SPDX-License-Identifier: Apache-2.0
"""The `native-fused` rung: many steps in one call into C++, with the state in registers or L1."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.collect.base import HostBuffers, Request
from headrace.collect.batch import Batch
from headrace.collect.native import NativeCollector
from headrace.errors import HeadraceError


class NativeFusedCollector(NativeCollector):
    """C++, K steps a call, all threads. Actions are random, or given for the whole batch."""

    rung = "native-fused"
    policies = ("random",)
    default_threads = None

    def __init__(self, request: Request, buffers: HostBuffers | None = None):
        super().__init__(request, buffers)
        self._fused = min(request.fused_steps or request.steps, request.steps)

    def collect(self, params: Any = None, *, actions: np.ndarray | None = None) -> Batch:
        """K steps a call; `actions[T, N, ...]` replace the random ones."""
        buffers, steps = self._buffers, self.request.steps
        if actions is not None:
            actions = self._checked(actions)
        buffers.begin()
        ends = 0
        for first in range(0, steps, self._fused):
            count = min(self._fused, steps - first)
            chunk = None if actions is None else actions[first : first + count]
            if chunk is not None and count == 1:
                chunk = chunk[0]
            ends = self._bound.run(first, count, ends, chunk, self.clock + first)
        if actions is not None:
            buffers.action[...] = actions
        self.clock += steps
        return buffers.batch(ends)

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """The whole batch is checked before any step of it is taken, as far as its shape goes."""
        wanted = self._buffers.action.shape
        if np.shape(actions) != wanted:
            raise HeadraceError(f"actions have shape {np.shape(actions)}; they must have {wanted}")
        return np.ascontiguousarray(actions)

    @property
    def calls_per_step(self) -> float:
        """A call does many steps."""
        return -(-self.request.steps // self._fused) / self.request.steps
