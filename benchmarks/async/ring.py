# SPDX-License-Identifier: Apache-2.0
"""The replay ring: what a written transition costs, and a batch of 8192 x 42 floats under fire.

Under fire of samplers at full speed, that is: the fastest that there are, CartPole's as a Gymnasium
class, make 100 to 200 thousand transitions a second, 64 at a time. And, without a bar, of a process
that does nothing but write, a hundred times as many: then what is measured is the machine's memory.
"""

import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark

from headrace.runtime.counters import STEPS, Counters
from headrace.runtime.fields import Field
from headrace.runtime.replay_ring import ReplayRing
from headrace.runtime.shared import SharedMemory

# HalfCheetah's: 42 floats, a transition
FIELDS = (
    Field("obs", (17,), "<f4"),
    Field("action", (6,), "<f4"),
    Field("reward", (), "<f4"),
    Field("discount", (), "<f4"),
    Field("next_obs", (17,), "<f4"),
)
CAPACITY, BATCH, WRITTEN = 1_000_000, 8192, 64
SAMPLER = 200_000.0
"""Transitions a second of a sampler at full speed."""


def channels(memory: SharedMemory) -> tuple[ReplayRing, Counters]:
    """The same parts in the same order, on both sides."""
    return ReplayRing(memory, FIELDS, CAPACITY), Counters(memory, 1)


def write_for_ever(descriptor: int, rate: float) -> None:
    """At this rate, or without rest where it is 0; at work in between, as a sampler is."""
    ring, counters = channels(SharedMemory(descriptor))
    writer = ring.writer(0, {field.name: field.rows(WRITTEN) for field in FIELDS})
    line, due = counters.samplers[0], time.perf_counter()
    while True:
        writer.write(WRITTEN)
        line.add(STEPS, WRITTEN)
        due += WRITTEN / rate if rate else 0.0
        while time.perf_counter() < due:
            pass


def best_of(repeats: int, seconds_per_call: float, call: object) -> float:
    """The least of several means, in seconds a call."""
    times = []
    for _ in range(repeats):
        begin, calls = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds_per_call:
            call()  # pyright: ignore[reportCallIssue]
            calls += 1
        times.append((time.perf_counter() - begin) / calls)
    return min(times)


def main() -> int:
    """Writing alone; reading alone; reading while another process writes."""
    bench = Benchmark("ring", __doc__)
    memory = SharedMemory()
    ring, counters = channels(memory)
    for rows in (1, 8, WRITTEN):
        writer = ring.writer(1, {field.name: field.rows(rows) for field in FIELDS})
        cost = best_of(5, bench.arguments.seconds, lambda w=writer, n=rows: w.write(n)) / rows
        bar = 1.0 if rows > 1 else 2.0
        bench.check(f"write, {rows} rows a call", cost * 1e6, bar, "us a transition")
    while ring.fill < CAPACITY:
        writer.write(WRITTEN)
    readers = {}
    for threads in (1, 2):
        into = {field.name: field.rows(BATCH) for field in FIELDS}
        readers[threads] = ring.reader(into, BATCH, seed=0, threads=threads)
    batch = itertools.count()  # each draws anew: rows are seldom in a cache
    packed = np.ones((CAPACITY, 42), np.float32)
    out, generator = np.zeros((BATCH, 42), np.float32), np.random.default_rng(0)
    indices = itertools.cycle(generator.integers(0, CAPACITY, (64, BATCH)))

    def take() -> None:
        np.take(packed, next(indices), 0, out, "clip")

    taken = best_of(5, bench.arguments.seconds, take)
    print(f"{'(np.take of one packed array)':32} {taken * 1e3:.3g} ms")
    for threads, reader in readers.items():
        cost = best_of(5, bench.arguments.seconds, lambda r=reader: r.sample(next(batch)))
        bench.check(f"gather, {threads} threads, no writer", cost * 1e3, 0.5, "ms a batch")
    for label, rate in (("a sampler", SAMPLER), ("a writer without rest", 0.0)):
        command = [sys.executable, __file__, str(memory.descriptor), str(rate)]
        process = subprocess.Popen(command, pass_fds=[memory.descriptor])
        line = counters.samplers[0]
        try:
            begun = line.get(STEPS)
            while line.get(STEPS) == begun:
                time.sleep(0.01)
            before, begin = line.get(STEPS), time.perf_counter()
            cost = best_of(5, bench.arguments.seconds, lambda: readers[1].sample(next(batch)))
            written = (line.get(STEPS) - before) / (time.perf_counter() - begin)
        finally:
            process.kill()
            process.wait()
        if rate:
            bench.check(f"gather beside {label}", cost * 1e3, 0.5, "ms a batch")
        else:
            print(f"{f'(gather beside {label})':32} {cost * 1e3:.3g} ms")
            bench.extra["without_rest_ms"] = cost * 1e3
        print(f"{'':32} it made {written / 1e6:.3g} M transitions/s meanwhile")
        bench.extra[f"{label} made per s"] = written
    return bench.finish()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdecimal():
        write_for_ever(int(sys.argv[1]), float(sys.argv[2]))
    sys.exit(main())
