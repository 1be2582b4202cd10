# SPDX-License-Identifier: Apache-2.0
"""On-policy experience in shared memory: rollouts, each with the version of the policy it is of.

Concurrency: a slot belongs to one sampler and to the learner by turns; its state word says whose
turn it is. EMPTY: the sampler's, who fills it and stores FULL to release; FULL: the learner's, who
loads it to acquire, reads, and stores EMPTY to release. So what one has written or read happens
before what the other does next, on any processor, and no data is ever accessed by both at once.
A sampler killed while it fills a slot leaves it EMPTY, and its successor begins it anew; there is
nothing to repair, and nothing half filled is ever read. Nobody waits: a sampler that finds none of
its slots empty, or a learner that finds none full, looks again later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace import _native
from headrace.runtime.fields import Fields
from headrace.runtime.shared import SharedMemory

EMPTY, FULL = range(2)
_STATE, _VERSION, _NUMBER = range(3)
_WORDS = 8
"""Of a slot: a line of the cache."""


@dataclass(frozen=True)
class Slot:
    """A rollout [T, N, ...] of one sampler, or room for one."""

    arrays: dict[str, np.ndarray]
    words: _native.Words
    first: int

    @property
    def full(self) -> bool:
        """Whether it is the learner's turn."""
        return self.words.get(self.first + _STATE) == FULL

    @property
    def version(self) -> int:
        """Of the parameters that acted."""
        return self.words.get(self.first + _VERSION)

    @property
    def number(self) -> int:
        """Which of its sampler's rollouts it is."""
        return self.words.get(self.first + _NUMBER)

    def hand_over(self, version: int, number: int) -> None:
        """By the sampler: it is filled."""
        self.words.set(self.first + _VERSION, version)
        self.words.set(self.first + _NUMBER, number)
        self.words.set(self.first + _STATE, FULL)

    def give_back(self) -> None:
        """By the learner: it has been read."""
        self.words.set(self.first + _STATE, EMPTY)


class RolloutSlots:
    """Several slots for each sampler, in a part of the shared memory."""

    def __init__(
        self,
        memory: SharedMemory,
        fields: Fields,
        *,
        samplers: int,
        slots: int,
        steps: int,
        envs: int,
    ):
        self.fields = fields
        count = samplers * slots
        words = _native.Words(memory.part(count * _WORDS * 8, "the rollouts' states"))
        sizes = [_padded(steps * envs * field.nbytes) for field in fields]
        room = memory.part(count * sum(sizes), f"{count} rollouts of {steps} x {envs} steps")
        every, at = [], 0
        for number in range(count):
            arrays = {}
            for field, size in zip(fields, sizes, strict=True):
                part = room[at : at + steps * envs * field.nbytes]
                arrays[field.name] = part.view(field.dtype).reshape((steps, envs, *field.shape))
                at += size
            every.append(Slot(arrays, words, number * _WORDS))
        self.by_sampler = [every[i * slots : (i + 1) * slots] for i in range(samplers)]

    def empty(self, sampler: int) -> Slot | None:
        """A slot that this sampler may fill."""
        return next((slot for slot in self.by_sampler[sampler] if not slot.full), None)

    def full(self, sampler: int) -> list[Slot]:
        """Those of this sampler that may be read, oldest first."""
        ready = [slot for slot in self.by_sampler[sampler] if slot.full]
        return sorted(ready, key=lambda slot: slot.number)


def _padded(size: int) -> int:
    return -(-size // 64) * 64
