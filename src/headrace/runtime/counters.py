# SPDX-License-Identifier: Apache-2.0
"""Numbers that the processes of a run tell each other: counts, heartbeats, orders.

Concurrency: each process has a line of words to itself and is its only writer; the supervisor has
the orders, which all others only read. A word is stored to release and loaded to acquire: whoever
sees a count sees all that was done before it was raised, rows and weights included. Nobody waits
for anybody here, other than by looking again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from headrace import _native
from headrace.runtime.shared import SharedMemory

_LINE = 8
"""Words of a process: a line of the cache, so that writers do not disturb each other."""

STEPS, EPISODES, BEAT, VERSION, WORK = range(5)
"""Of an acting process: environment steps taken, episodes ended, heartbeat (ns), version of the
weights acted with, rollouts handed over."""
UPDATES, FRAMES, _, STALE_SUM, STALE_COUNT, STALE_MAX, ALLOWANCE, DROPPED = range(_LINE)
"""Of the learner: updates made, transitions learnt from, (heartbeat,) the versions between acting
and learning: their sum, number and maximum; how many steps all samplers together may have taken,
where they are told; rollouts thrown away as too old."""
STOP, LAST = range(2)
"""The supervisor's orders: to stop; for the evaluator, not to wait with the newest weights."""


@dataclass(frozen=True)
class Line:
    """The words of one process."""

    words: _native.Words
    first: int

    def get(self, word: int) -> int:
        """What it is now."""
        return self.words.get(self.first + word)

    def set(self, word: int, value: int) -> None:
        """For the line's own process."""
        self.words.set(self.first + word, value)

    def add(self, word: int, value: int) -> None:
        """For the line's own process."""
        self.words.add(self.first + word, value)

    def beat(self) -> None:
        """I am alive."""
        self.words.set(self.first + BEAT, time.monotonic_ns())

    def silence(self) -> float:
        """Seconds since it last beat; 0 where it never has."""
        last = self.get(BEAT)
        return (time.monotonic_ns() - last) / 1e9 if last else 0.0


class Counters:
    """A line for the supervisor's orders, the learner, the evaluator and each sampler."""

    def __init__(self, memory: SharedMemory, samplers: int):
        lines = 3 + samplers
        words = _native.Words(memory.part(lines * _LINE * 8, "the counters"))
        every = [Line(words, number * _LINE) for number in range(lines)]
        self.orders, self.learner, self.evaluator = every[:3]
        self.samplers = every[3:]

    def sampled(self) -> int:
        """Environment steps of all samplers."""
        return sum(line.get(STEPS) for line in self.samplers)
