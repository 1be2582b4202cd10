# SPDX-License-Identifier: Apache-2.0
"""What this machine can do at most for a given work, whatever the program.

Every transition must be stored, and its arithmetic done:

    limit = min(store bandwidth / bytes of a transition, arithmetic peak / operations of a step)

Both yardsticks are native loops that do nothing else: one stores into a buffer as large as the
batch again and again, one does float32 products and sums in registers. They are taken on one thread
and on all, between the rungs of the same run; the best of each counts, as it does for the rungs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headrace import _native
from headrace.envs.native import default_isa, max_threads
from headrace.envs.spec import EnvSpec

SAMPLE_SECONDS = 0.04
SMALLEST_BUFFER = 1 << 14
"""Smaller batches are in the nearest cache like this; the clock would be all that is measured."""


@dataclass(frozen=True)
class Limit:
    """The machine's limit for one work."""

    num_envs: int
    steps: int
    store_bandwidth: float
    """Bytes/s, into a buffer of the batch's size."""
    arithmetic_peak: float
    """float32 operations/s."""
    transition_bytes: float
    """That must be stored for each transition."""
    step_operations: float | None
    """Of an environment; None: there is no array definition to count them in."""
    options: dict[str, Any]

    @property
    def by_store(self) -> float:
        """Steps/s, if only storing took time."""
        return self.store_bandwidth / self.transition_bytes

    @property
    def by_arithmetic(self) -> float | None:
        """Steps/s, if only arithmetic took time."""
        return self.arithmetic_peak / self.step_operations if self.step_operations else None

    @property
    def steps_per_second(self) -> float:
        """The lower of the two."""
        return min(self.by_store, self.by_arithmetic or self.by_store)

    @property
    def binding(self) -> Literal["store bandwidth", "arithmetic"]:
        """Which one that is."""
        return "store bandwidth" if self.steps_per_second == self.by_store else "arithmetic"


class Yardsticks:
    """The best seen so far of both, for batches of one size."""

    def __init__(self, batch_bytes: float, threads: int | None):
        self._buffer = np.zeros(max(int(batch_bytes), SMALLEST_BUFFER), np.uint8)
        self._threads = sorted({1, threads or max_threads()})
        self._isa = default_isa()
        self.store_bandwidth = 0.0
        self.arithmetic_peak = 0.0

    def sample(self) -> None:
        """Take both once more, for a moment."""
        for threads in self._threads:
            stored = _native.store_bandwidth(self._buffer, SAMPLE_SECONDS, threads, self._isa)
            done = _native.arithmetic_peak(SAMPLE_SECONDS, threads, self._isa)
            self.store_bandwidth = max(self.store_bandwidth, stored)
            self.arithmetic_peak = max(self.arithmetic_peak, done)


def count_operations(spec: EnvSpec, ends: float) -> float | None:
    """Operations for each step, with this many ended episodes a step; None: cannot be counted."""
    if "array" not in spec.definitions:
        return None
    from headrace.report.operations import step_operations

    try:
        return step_operations(spec.make_array(), spec.max_episode_steps).per_step(ends)
    except Exception:  # an environment that JAX cannot trace has no xla rungs either, which say so
        return None
