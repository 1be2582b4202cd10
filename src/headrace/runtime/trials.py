# SPDX-License-Identifier: Apache-2.0
"""What the tuner measures with: real samplers, and a learner that updates from made-up experience.

The learner's process measures updates alone: what is in a batch does not change what it costs. The
samplers are those of the run, beside it, so that both compete for the machine as they will.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from headrace.collect.channel import FAILED
from headrace.errors import HeadraceError
from headrace.runtime import counters
from headrace.runtime.child import Wire
from headrace.runtime.plan import Channels, Plan, open_channels
from headrace.runtime.process import Process
from headrace.runtime.sampler import Sampler
from headrace.runtime.shared import SharedMemory
from headrace.runtime.weights import FlatTree

MEASURE, READY, MEASURED = b"M", b"R", b"D"
_NAP_S = 0.002
_START_S = 60.0
_COMPILE_S = 300.0


class Measured(NamedTuple):
    """Of updates."""

    frames: float
    """Transitions learnt from, a second."""
    compiling: float
    """Seconds before the first result."""


@dataclass(frozen=True)
class UpdateTrials:
    """The work of the process that measures updates."""

    plan: Plan

    def __call__(self, memory: SharedMemory, line: Wire) -> None:
        """One measurement for each order."""
        from headrace.runtime.updates import updates_of

        algorithm = self.plan.algorithm()
        updates = updates_of(algorithm, self.plan.config)
        line.tell(READY)
        while (order := line.channel.receive()) is not None and order.kind == MEASURE:
            batch_size, count, seconds = order.payload
            batches = _made_up(self.plan, batch_size, count)
            state = algorithm.init(0)
            begin = time.perf_counter()
            state = updates(state, batches).state
            state = _done(updates(state, batches)).state
            compiling = time.perf_counter() - begin
            begin, dispatches = time.perf_counter(), 0
            while time.perf_counter() - begin < seconds or dispatches < 2:
                state = _done(updates(state, batches)).state
                dispatches += 1
            frames = dispatches * count * batch_size / (time.perf_counter() - begin)
            line.tell(MEASURED, Measured(frames, compiling))


def _done(result: Any) -> Any:
    np.asarray(result.vector)
    return result


def _made_up(plan: Plan, batch_size: int, count: int) -> Any:
    """Batches [K, B, ...] of small numbers."""
    from headrace.learn.algorithm import Transitions

    generator = np.random.default_rng(0)
    arrays = {}
    for field in plan.fields:
        rows = field.rows(count, batch_size)
        if rows.dtype.kind == "f":
            rows[...] = generator.uniform(-0.5, 0.5, rows.shape)
        arrays[field.name] = rows
    return Transitions(**arrays)


class Updater:
    """That process, from outside."""

    def __init__(self, plan: Plan):
        self._memory = SharedMemory()
        log = plan.folder / "tuner.log"
        self._process = Process(
            f"headrace tuner {plan.folder.name}",
            UpdateTrials(plan),
            self._memory.descriptor,
            log,
            threads=plan.settings.learner_threads,
        )

    def ready(self) -> None:
        """Wait until it has imported what it needs."""
        self._wait_for(READY, _START_S)

    def measure(self, batch_size: int, count: int, seconds: float) -> Measured:
        """Updates of this batch, `count` in a dispatch."""
        self._process.send(MEASURE, (batch_size, count, seconds))
        return self._wait_for(MEASURED, _COMPILE_S)

    def _wait_for(self, kind: bytes, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for message in self._process.messages():
                if message.kind == kind:
                    return message.payload
                if message.kind == FAILED:
                    raise HeadraceError(f"tuning: the learner failed: {message.payload[1]}")
            if (ending := self._process.ending()) is not None:
                raise HeadraceError(f"tuning: the learner's process {ending}")
            time.sleep(_NAP_S)
        raise HeadraceError(f"tuning: the learner did not answer within {seconds:.0f} s")

    def __enter__(self) -> Self:
        """Itself; its process ends with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.kill()
        self._process.close()
        self._memory.close()


class Samplers:
    """Samplers of a plan, by themselves: a run without a learner."""

    def __init__(self, plan: Plan, acting: Any):
        settings = dataclasses.replace(plan.settings, replay_ratio=None, lock_step=False)
        config = dataclasses.replace(plan.config, settings=settings)
        self._plan = dataclasses.replace(plan, config=config)
        self._memory = SharedMemory()
        self.channels: Channels = open_channels(self._memory, self._plan)
        self.channels.weights.publish(FlatTree(acting).vector)
        self._processes = [
            Process(
                f"headrace sampler {index} {plan.folder.name}",
                Sampler(self._plan, index),
                self._memory.descriptor,
                plan.folder / "tuner.log",
                threads=1,
            )
            for index in range(plan.samplers)
        ]

    def begun(self) -> None:
        """Wait until all of them have handed something over."""
        deadline = time.monotonic() + _START_S
        lines = self.channels.counters.samplers
        while not all(line.get(counters.STEPS) for line in lines):
            self.take()
            for process in self._processes:
                for message in process.messages():
                    if message.kind == FAILED:
                        raise HeadraceError(f"tuning: a sampler failed: {message.payload[1]}")
                if (ending := process.ending()) is not None:
                    raise HeadraceError(f"tuning: a sampler {ending}")
            if time.monotonic() > deadline:
                raise HeadraceError(f"tuning: a sampler took no step within {_START_S:.0f} s")
            time.sleep(_NAP_S)

    def take(self) -> None:
        """On-policy: empty their slots, as a learner would."""
        if self.channels.slots is not None:
            for sampler in range(self._plan.samplers):
                for slot in self.channels.slots.full(sampler):
                    slot.give_back()

    def rate(self, seconds: float) -> float:
        """Environment steps a second, over this time."""
        begin, before = time.perf_counter(), self.channels.counters.sampled()
        while time.perf_counter() - begin < seconds:
            self.take()
            time.sleep(_NAP_S)
        return (self.channels.counters.sampled() - before) / (time.perf_counter() - begin)

    def __enter__(self) -> Self:
        """Themselves; they end with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self.channels.counters.orders.set(counters.STOP, 1)
        for process in self._processes:
            process.kill()
            process.close()
        self._memory.close()
