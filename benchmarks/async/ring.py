# SPDX-License-Identifier: Apache-2.0
"""The replay ring: what a written transition costs, and a batch of 8192 x 42 floats under fire."""

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


def channels(memory: SharedMemory) -> tuple[ReplayRing, Counters]:
    """The same parts in the same order, on both sides."""
    return ReplayRing(memory, FIELDS, CAPACITY), Counters(memory, 1)


def write_for_ever(descriptor: int) -> None:
    """A sampler at full speed: it does nothing but write."""
    ring, counters = channels(SharedMemory(descriptor))
    writer = ring.writer(0, {field.name: field.rows(WRITTEN) for field in FIELDS})
    line = counters.samplers[0]
    while True:
        writer.write(WRITTEN)
        line.add(STEPS, WRITTEN)


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
    process = subprocess.Popen(
        [sys.executable, __file__, str(memory.descriptor)], pass_fds=[memory.descriptor]
    )
    try:
        while not counters.samplers[0].get(STEPS):
            time.sleep(0.01)
        before, begin = counters.samplers[0].get(STEPS), time.perf_counter()
        cost = best_of(5, bench.arguments.seconds, lambda: readers[1].sample(next(batch)))
        written = counters.samplers[0].get(STEPS) - before
        rate = written / (time.perf_counter() - begin)
        bench.check("gather beside a writer", cost * 1e3, 0.5, "ms a batch")
        print(f"{'':32} the writer made {rate / 1e6:.2f} M transitions/s meanwhile")
        bench.extra["writer_per_s"] = rate
    finally:
        process.kill()
        process.wait()
    return bench.finish()


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].isdecimal():
        write_for_ever(int(sys.argv[1]))
    sys.exit(main())
