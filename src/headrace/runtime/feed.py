# SPDX-License-Identifier: Apache-2.0
"""What the learner learns from, gathered in a thread of its own while it learns.

Concurrency: two sets of buffers go round between the gathering thread and the learner's own, by two
queues; whoever has a set is alone with it. The native gathering works without the interpreter's
lock. `Feed.next` gives a set, `Feed.give_back` returns it once the update that reads it is done:
JAX takes aligned buffers without copying them.
"""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.learn.algorithm import Rollout, Transitions
from headrace.runtime import counters
from headrace.runtime.plan import Channels, Plan
from headrace.runtime.rollout_slots import Slot

_SETS = 2
_NAP_S = 2e-4


@dataclass
class Experience:
    """A set of buffers and what is in it."""

    arrays: Any
    """`Transitions` [K, B, ...] or a `Rollout` [T, N, ...]."""
    number: int = 0
    """Which dispatch it is for."""
    versions: tuple[int, ...] = ()
    """Of the policies that made it, where that is known."""


class Feed(ABC):
    """Experience for one dispatch after the other."""

    def __init__(self, plan: Plan, channels: Channels):
        self._plan, self._channels = plan, channels
        self._free: queue.SimpleQueue[Experience | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[Experience | BaseException] = queue.SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._gather, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to gather."""
        for _ in range(1 if self._plan.settings.lock_step else _SETS):
            self._free.put(Experience(self.buffers()))
        self._thread.start()

    def next(self, seconds: float) -> Experience | None:
        """The next set; None where there is none within this time."""
        try:
            found = self._ready.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        return found

    def give_back(self, experience: Experience) -> None:
        """It has been learnt from."""
        self._free.put(experience)

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self._free.put(None)
        self._thread.join()

    @abstractmethod
    def buffers(self) -> Any:
        """Memory for one dispatch."""

    @abstractmethod
    def fill(self, experience: Experience) -> bool:
        """Gather, if all that is needed is there."""

    def _gather(self) -> None:
        number = 0
        try:
            while (experience := self._free.get()) is not None:
                experience.number = number
                while not self._stopping and not self.fill(experience):
                    time.sleep(_NAP_S)
                self._ready.put(experience)
                number += 1
        except BaseException as error:  # the learner's own thread is to say so
            self._ready.put(error)


class ReplayFeed(Feed):
    """Batches drawn from the ring."""

    def __init__(self, plan: Plan, channels: Channels, threads: int = 1):
        super().__init__(plan, channels)
        assert channels.ring is not None
        self._ring, self._threads = channels.ring, threads
        self._readers: dict[int, Any] = {}
        starts = plan.settings.learning_starts
        self._first = -(-starts // plan.iteration) * plan.iteration
        """Environment steps before the first update: whole iterations."""

    def buffers(self) -> Transitions:
        """[K, B, ...]; the ring fills the same memory as rows [K x B, ...]."""
        plan = self._plan
        rows = {field.name: field.rows(plan.updates * plan.batch_size) for field in plan.fields}
        reader = self._ring.reader(rows, plan.batch_size, plan.settings.seed, self._threads)
        shape = (plan.updates, plan.batch_size)
        made = Transitions(**{k: a.reshape(*shape, *a.shape[1:]) for k, a in rows.items()})
        self._readers[id(made)] = reader
        return made

    def steps_needed(self, number: int) -> int:
        """Environment steps that there must be for dispatch `number`."""
        if self._plan.ratio is None:
            return self._first
        return self._first + int(number * self._plan.updates / self._plan.ratio)

    def allowance(self, done: int) -> int:
        """Environment steps that there may be while `done` dispatches are done."""
        slack = 0
        if not self._plan.settings.lock_step and self._plan.ratio is not None:
            slack = 2 * self._plan.iteration + int(self._plan.updates / self._plan.ratio)
        return self.steps_needed(done) + slack

    def fill(self, experience: Experience) -> bool:
        """Draw, once there are as many steps as the dispatch needs."""
        if self._channels.counters.sampled() < self.steps_needed(experience.number):
            return False
        first = experience.number * self._plan.updates
        self._readers[id(experience.arrays)].sample(first & 0xFFFFFFFF)
        return True


class RolloutFeed(Feed):
    """One rollout of each sampler, side by side; those that are too old are thrown away."""

    def __init__(self, plan: Plan, channels: Channels):
        super().__init__(plan, channels)
        assert channels.slots is not None
        self._slots = channels.slots
        self.dropped = 0

    def buffers(self) -> Rollout:
        """[T, N, ...] of all samplers' environments."""
        plan = self._plan
        shape = (plan.steps, plan.samplers * plan.envs)
        arrays = {field.name: field.rows(*shape) for field in plan.fields}
        extras = {k.partition("/")[2]: a for k, a in arrays.items() if "/" in k}
        return Rollout(**{k: a for k, a in arrays.items() if "/" not in k}, extras=extras)

    def allowance(self, done: int) -> int:
        """Environment steps that there may be while `done` dispatches are done."""
        return (done + 1) * self._plan.iteration

    def fill(self, experience: Experience) -> bool:
        """Copy, once each sampler has a rollout that is young enough."""
        chosen = [self._oldest(sampler) for sampler in range(self._plan.samplers)]
        if any(slot is None for slot in chosen):
            return False
        for sampler, slot in enumerate(chosen):
            assert slot is not None
            first = sampler * self._plan.envs
            for name, rows in slot.arrays.items():
                kind, _, extra = name.partition("/")
                whole = (
                    experience.arrays.extras[extra] if extra else getattr(experience.arrays, kind)
                )
                whole[:, first : first + self._plan.envs] = rows
        experience.versions = tuple(slot.version for slot in chosen if slot is not None)
        for slot in chosen:
            assert slot is not None
            slot.give_back()
        return True

    def _oldest(self, sampler: int) -> Slot | None:
        newest = self._channels.weights.version
        for slot in self._slots.full(sampler):
            if newest - slot.version <= self._plan.settings.staleness:
                return slot
            slot.give_back()
            self.dropped += 1
        return None


def make_feed(plan: Plan, channels: Channels) -> ReplayFeed | RolloutFeed:
    """The one that the algorithm needs."""
    return RolloutFeed(plan, channels) if plan.on_policy else ReplayFeed(plan, channels)


def too_old(experience: Experience, newest: int, bound: int) -> bool:
    """Whether any of it is of a policy older than the bound, by now."""
    return any(newest - version > bound for version in experience.versions)


def note_staleness(line: counters.Line, experience: Experience, newest: int) -> None:
    """Of what is learnt from now."""
    ages = np.array([newest - version for version in experience.versions])
    if len(ages):
        line.add(counters.STALE_SUM, int(ages.sum()))
        line.add(counters.STALE_COUNT, len(ages))
        line.set(counters.STALE_MAX, max(line.get(counters.STALE_MAX), int(ages.max())))
