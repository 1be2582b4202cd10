# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's own classes, learnt asynchronously and serially, until solved; against peers.

From process start until the evaluation that reaches the bar (ours: until the process has ended),
with a cold compilation cache for the first seed; what was saved must still reach the bar over 100
fresh episodes. The bars: 0.27 of Stable-Baselines3's time, and 1.05 of our own serial mode's.
"""

import statistics
import sys
import tempfile
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "train")]
from contestants import Contestant, Run, run_ours, run_peer  # noqa: E402
from harness import Benchmark  # noqa: E402

SB3 = Contestant(
    "Stable-Baselines3", "sb3", "stable_baselines.py", ("--package", "stable_baselines3")
)
SHARED = ("--definition", "gym", "--preset", "none", "--total-steps", "1000000", "--no-plot")
SAC = (*SHARED, "--actor-learning-rate", "1e-3", "--critic-learning-rate", "1e-3",
       "--temperature-learning-rate", "1e-3", "--discount", "0.98", "--learning-starts",
       "500", "--evaluation-every", "250")  # fmt: skip
ASYNC = ("--mode", "async", "--no-tune", "--samplers", "1", "--envs-per-sampler", "4", "--steps",
         "8", "--replay-ratio", "0.5", "--updates-per-dispatch", "16")  # fmt: skip
SERIAL = ("--mode", "serial", "--num-envs", "4", "--steps", "8", "--updates", "16")


def main() -> int:
    """SAC on Pendulum-v1."""
    bench = Benchmark("async_until_solved", __doc__, seeds=3, task="sac-pendulum")
    task, seeds = bench.arguments.task, range(bench.arguments.seeds)
    cache = Path(tempfile.mkdtemp(prefix="headrace-bench-cache-"))
    times: dict[str, float] = {}

    def race(name: str, runs: list[Run]) -> None:
        for run in runs:
            print(run.row(), flush=True)
        solved = all(run.solved for run in runs)
        times[name] = statistics.mean(run.seconds for run in runs) if solved else float("inf")
        bench.extra[name] = [run.to_json() for run in runs]

    for name, flags in (("asynchronous", ASYNC), ("serial", SERIAL)):
        race(name, [run_ours(name, task, seed, cache, flags=(*SAC, *flags)) for seed in seeds])
    bench.with_peer(lambda: race("sb3", [run_peer(SB3, task, seed) for seed in seeds]))
    for other, bar in (("sb3", 0.27), ("serial", 1.05)):
        if other in times:
            label = f"asynchronous / {other}, {task}"
            bench.check(label, times["asynchronous"] / times[other], bar, "of the time")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
