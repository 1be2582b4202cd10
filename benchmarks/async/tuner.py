# SPDX-License-Identifier: Apache-2.0
"""The tuner against an exhaustive grid, by its own objective: update frames a second.

Every setting is measured with the tuner's own processes: samplers held to the rate that was asked
for, a learner beside them. Those whose samplers do not make that rate do not count. Whatever came
out best, and what the tuner chose, is then measured again, in turns: neither profits from a lucky
moment. `--quick 1` looks at few settings.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark

from headrace.runtime.machine import processors
from headrace.runtime.plan import Plan
from headrace.runtime.run import make_plan
from headrace.runtime.trials import Samplers, Updater
from headrace.runtime.tuner import tune
from headrace.train.config import environment
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of

Point = tuple[int, int, int, int]
"""Samplers, environments of each, transitions of a batch, updates of a dispatch."""
REACHED = 0.9
"""Of the sampling rate, within a measurement of a second."""
ROUNDS = 5


def a_plan(env: str, algo: str, target: float, largest: int) -> Plan:
    """With nothing given."""
    given = {"sampling_rate": target, "largest_batch": largest}
    config = resolve(env, algo=algo, mode="async", definition="gym", preset="none", given=given)
    algorithm = make_algorithm_of(config, environment(config))
    acting = algorithm.acting(algorithm.init(0))
    return make_plan(config, Path(tempfile.mkdtemp(prefix="headrace-bench-")), algorithm, acting)


def measured(
    plan: Plan, updater: Updater, points: Sequence[Point], seconds: float
) -> dict[Point, tuple[float, float]]:
    """Of each: update frames and environment steps a second, at once."""
    found = {}
    for (samplers, envs), group in groupby(sorted(points), key=lambda point: point[:2]):
        with Samplers(replace(plan, samplers=samplers, envs=envs), plan.acting) as running:
            running.begun()
            for point in group:
                before, begin = running.channels.counters.sampled(), time.perf_counter()
                frames = updater.measure(point[2], point[3], seconds).frames
                # Steps are counted as they are handed over: one round of them may be under way.
                steps = running.channels.counters.sampled() - before + samplers * envs * plan.steps
                found[point] = frames, steps / (time.perf_counter() - begin)
    return found


def grid(plan: Plan, largest: int, quick: bool) -> set[Point]:
    """All settings."""
    batches = [plan.batch_size]
    while batches[-1] < largest:
        batches.append(2 * batches[-1])
    envs, updates = ((8, 32), (1, 8, 32)) if not quick else ((8,), (1, 16))
    return set(product(range(1, processors() + 1), envs, batches, updates))


def main() -> int:
    """Tune, then measure everything."""
    bench = Benchmark(
        "tuner", __doc__, env="HalfCheetah-v5", algo="sac", target=1500.0, largest=2048, quick=0
    )
    arguments = bench.arguments
    os.environ["HEADRACE_CACHE_DIR"] = tempfile.mkdtemp(prefix="headrace-bench-cache-")
    plan = a_plan(arguments.env, arguments.algo, arguments.target, arguments.largest)
    choice = tune(plan, lambda text: print(text, flush=True), use_cache=False)
    bench.check("the tuner took", choice.seconds, 20.0, f"s, and {choice.compiling} compiling")
    chosen = (choice.samplers, choice.envs, choice.batch_size, choice.updates)
    points = grid(plan, arguments.largest, bool(arguments.quick)) | {chosen}
    print(f"a grid of {len(points)} settings (samplers, environments, batch, updates)", flush=True)
    seconds = 2 * arguments.seconds
    with Updater(plan) as updater:
        updater.ready()
        for batch, updates in sorted({point[2:] for point in points}):
            updater.measure(batch, updates, 0.0)  # compiled: samplers are not to wait for that
        found = measured(plan, updater, sorted(points), seconds)
        for point, (frames, steps) in sorted(found.items(), key=lambda item: -item[1][0]):
            slow = "" if steps >= REACHED * arguments.target else "   too few steps"
            print(point, f"{frames:,.0f} frames/s, {steps:,.0f} steps/s{slow}", flush=True)
        reached = [p for p, (_, steps) in found.items() if steps >= REACHED * arguments.target]
        if not reached:
            print(f"no setting makes {arguments.target:,.0f} steps/s here", flush=True)
            return 1
        finalists = sorted(reached, key=lambda point: -found[point][0])[:3]
        again = [measured(plan, updater, [*{*finalists, chosen}], 2 * seconds)
                 for _ in range(ROUNDS)]  # fmt: skip
    frames, steps = (
        {point: statistics.median(one[point][i] for one in again) for point in again[0]}
        for i in (0, 1)
    )
    best = max(finalists, key=lambda point: frames[point])
    bench.check_rate(
        f"chosen {chosen}, of the best {best}",
        frames[chosen],
        frames[best],
        0.9,
        valid=steps[chosen] >= REACHED * arguments.target,
    )
    bench.extra |= {
        "compiling_s": choice.compiling,
        "chosen_steps": steps[chosen],
        "grid": [{"point": point, "frames": f, "steps": s} for point, (f, s) in found.items()],
    }
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
