# SPDX-License-Identifier: Apache-2.0
"""Two MPI ranks of one thread against one rank, counted where the whole batch can be read.

Each rank makes as many examples a collect, so that two make twice the batch. Beside it: the time of
a batch of 640 examples, 20 environments x 32 steps, on one rank and on two.
"""

import statistics
import sys
import time
from typing import Any

from harness import Benchmark, collecting, make

import headrace
from headrace import Collector

BAR = 1.7
STEPS = 32


def milliseconds(collector: Collector, seconds: float) -> float:
    """The median time of a batch."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        start = time.perf_counter()
        collector.collect()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main() -> int:
    """The ratio, and both times."""
    bench = Benchmark("mpi", __doc__, env="Chess-v0", examples=2560, set="observation=compact")
    chosen = bench.arguments
    options: dict[str, Any] = dict(part.split("=", 1) for part in chosen.set.split(",") if part)
    spec = headrace.spec(chosen.env, **options)
    each = chosen.examples // STEPS
    with (
        make(spec, "mpi", 2 * each, STEPS, ranks=2, threads=1) as two,
        make(spec, "mpi", each, STEPS, ranks=1, threads=1) as one,
    ):
        label = f"{chosen.env} {chosen.examples} a rank, 2 / 1"
        bench.compare(label, collecting(two), collecting(one), BAR)
    for ranks in (1, 2):
        with make(spec, "mpi", 640 // STEPS, STEPS, ranks=ranks, threads=1) as source:
            milliseconds(source, 0.2)
            took = milliseconds(source, chosen.seconds)
        print(f"a batch of 640 on {ranks} of one thread: {took:.3f} ms")
        bench.extra[f"batch_of_640_ms_{ranks}"] = took
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
