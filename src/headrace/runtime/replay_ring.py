# SPDX-License-Identifier: Apache-2.0
"""Replay in shared memory: packed rows of typed fields, several writers, one reader, no lock.

Concurrency: `native/channels/ring.hpp` states the contract, with the argument for its memory order.
In short: each writer is one thread of one process under a number that no other living process has;
nobody ever waits; a writer killed within a row costs that slot, until `repair` is called for its
number once it is certainly dead; a reader never sees a row that was being written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace import _native
from headrace.runtime.fields import Fields
from headrace.runtime.shared import SharedMemory


class ReplayRing:
    """Room for `capacity` rows, in a part of the shared memory."""

    def __init__(self, memory: SharedMemory, fields: Fields, capacity: int):
        sizes = [field.nbytes for field in fields]
        size = _native.Ring.memory_bytes(capacity, sizes)
        part = memory.part(size, f"a replay of {capacity:,} transitions")
        self.fields, self.capacity = fields, capacity
        self._ring = _native.Ring(part, capacity, sizes)

    def writer(self, owner: int, rows: Mapping[str, np.ndarray]) -> _native.RingWriter:
        """Writes the first rows of these arrays, as often as its `write(count)` is called."""
        return _native.RingWriter(self._ring, owner, [rows[field.name] for field in self.fields])

    def reader(
        self, into: Mapping[str, np.ndarray], batch_size: int, seed: int, threads: int = 1
    ) -> _native.RingReader:
        """Fills these arrays with batches: `sample(batch)`, whose number is that of the first.

        What is drawn depends on the seed, the number of the batch and what the ring holds, and is
        what `headrace.learn.replay` draws from as many rows.
        """
        arrays = [into[field.name] for field in self.fields]
        return _native.RingReader(self._ring, arrays, batch_size, seed, threads)

    def repair(self, owner: int) -> int:
        """Free what a writer that has certainly ended left half written; returns how many."""
        return self._ring.repair(owner)

    @property
    def fill(self) -> int:
        """How many slots may hold a row."""
        return self._ring.fill

    def rows(self, first: int = 0, last: int | None = None) -> dict[str, np.ndarray]:
        """A copy of the whole rows among these slots: for checkpoints, and for tests."""
        end = self.fill if last is None else last
        out = {field.name: field.rows(max(1, end - first)) for field in self.fields}
        count = self._ring.copy(list(out.values()), first, end) if end > first else 0
        return {name: array[:count] for name, array in out.items()}

    def restore(self, rows: Mapping[str, np.ndarray], owner: int = 0) -> None:
        """Write what `rows` gave."""
        arrays = [np.ascontiguousarray(rows[field.name]) for field in self.fields]
        if len(arrays[0]):
            self._ring.write(owner, arrays, len(arrays[0]))

    def stop_within_a_row(self, ticket: int, owner: int) -> bool:
        """Do what a writer has done that is killed within a row: for tests."""
        return self._ring.claim(ticket, owner)
