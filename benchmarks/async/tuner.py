# SPDX-License-Identifier: Apache-2.0
"""The tuner against an exhaustive grid, by its own objective: update frames a second.

Both measure with the same processes. The grid's points are those at which samplers make the steps
that were asked for; the tuner's choice is measured again among them, so that neither profits from a
lucky moment.
"""

import os
import sys
import tempfile
from dataclasses import replace
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


def a_plan(env: str, algo: str, target: float, largest: int) -> Plan:
    """With nothing given."""
    given = {"sampling_rate": target, "largest_batch": largest}
    config = resolve(env, algo=algo, mode="async", definition="gym", preset="none", given=given)
    algorithm = make_algorithm_of(config, environment(config))
    acting = algorithm.acting(algorithm.init(0))
    return make_plan(config, Path(tempfile.mkdtemp(prefix="headrace-bench-")), algorithm, acting)


def main() -> int:
    """Tune, then measure everything."""
    bench = Benchmark(
        "tuner", __doc__, env="HalfCheetah-v5", algo="sac", target=1500.0, largest=2048
    )
    arguments = bench.arguments
    os.environ["HEADRACE_CACHE_DIR"] = tempfile.mkdtemp(prefix="headrace-bench-cache-")
    plan = a_plan(arguments.env, arguments.algo, arguments.target, arguments.largest)
    choice = tune(plan, lambda text: print(text, flush=True), use_cache=False)
    bench.check("the tuner took", choice.seconds, 20.0, f"s, and {choice.compiling} compiling")
    batches = [plan.batch_size]
    while batches[-1] < arguments.largest:
        batches.append(2 * batches[-1])
    chosen = (choice.samplers, choice.envs, choice.batch_size, choice.updates)
    points = {chosen} | {
        (samplers, envs, batch, updates)
        for samplers in range(1, processors() + 1)
        for envs in (4, 16)
        for batch in batches
        for updates in (1, 8, 32)
    }
    frames = {}
    with Updater(plan) as updater:
        updater.ready()
        for samplers, envs in sorted({point[:2] for point in points}):
            with Samplers(replace(plan, samplers=samplers, envs=envs), plan.acting) as running:
                running.begun()
                for point in sorted(one for one in points if one[:2] == (samplers, envs)):
                    measured = updater.measure(point[2], point[3], 3 * bench.arguments.seconds)
                    frames[point] = measured.frames
                    print(point, f"{measured.frames:,.0f} frames/s", flush=True)
    best = max(frames, key=lambda point: frames[point])
    ratio = frames[chosen] / frames[best]
    print(f"chosen {chosen}: {ratio:.2f} of the best, {best}   bar 0.9")
    bench.rows.append({"label": "of the best of the grid", "bar": 0.9, "ratio": ratio})
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
