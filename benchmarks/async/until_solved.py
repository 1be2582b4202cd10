# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's own classes, learnt asynchronously and serially, until solved; against peers.

From process start until the evaluation that reaches the bar (ours: until the process has ended),
with a cold compilation cache for the first seed; what was saved must still reach the bar over 100
fresh episodes.
"""

import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "train")]
from contestants import Contestant, Run, run_ours, run_peer  # noqa: E402
from harness import Benchmark  # noqa: E402

SHARED = ("--definition", "gym", "--preset", "none", "--no-plot")


@dataclass(frozen=True)
class Setting:
    """A task: our flags in both modes, the peer, and what share of its time ours may take."""

    both: tuple[str, ...]
    asynchronous: tuple[str, ...]
    serial: tuple[str, ...]
    peer: Contestant
    bar: float
    serial_bar: float | None = None


SETTINGS = {
    "sac-pendulum": Setting(
        ("--actor-learning-rate", "1e-3", "--critic-learning-rate", "1e-3",
         "--temperature-learning-rate", "1e-3", "--discount", "0.98", "--learning-starts", "500",
         "--evaluation-every", "250"),
        ("--samplers", "1", "--envs-per-sampler", "4", "--steps", "8", "--replay-ratio", "0.5",
         "--updates-per-dispatch", "16"),
        ("--num-envs", "4", "--steps", "8", "--updates", "16"),
        Contestant(
            "Stable-Baselines3", "sb3", "stable_baselines.py", ("--package", "stable_baselines3")
        ),
        0.27,
        1.05,
    ),
    "ppo-cartpole": Setting(
        ("--num-envs", "32", "--steps", "32", "--epochs", "6", "--learning-rate", "1e-3",
         "--discount", "0.98", "--trace", "0.8", "--evaluation-every", "4096"),
        ("--samplers", "1", "--staleness", "2"),
        (),
        Contestant("Sample Factory", "sample_factory", "sample_factory_until.py"),
        0.25,
    ),
}  # fmt: skip
"""The peers' environment steps a second are in their rows as well."""


def main() -> int:
    """One task."""
    bench = Benchmark("async_until_solved", __doc__, seeds=3, task="sac-pendulum")
    task, seeds = bench.arguments.task, range(bench.arguments.seeds)
    chosen = SETTINGS[task]
    cache = Path(tempfile.mkdtemp(prefix="headrace-bench-cache-"))
    times: dict[str, float] = {}

    def race(name: str, runs: list[Run]) -> None:
        for run in runs:
            print(run.row(), flush=True)
        solved = all(run.solved for run in runs)
        times[name] = statistics.mean(run.seconds for run in runs) if solved else float("inf")
        bench.extra[name] = [run.to_json() for run in runs]

    ours = {
        "asynchronous": ("--mode", "async", "--no-tune", *chosen.asynchronous),
        "serial": ("--mode", "serial", *chosen.serial),
    }
    for name, flags in ours.items():
        every = (*SHARED, *chosen.both, *flags)
        race(name, [run_ours(name, task, seed, cache, flags=every) for seed in seeds])
    peer = chosen.peer
    bench.with_peer(lambda: race(peer.venv, [run_peer(peer, task, seed) for seed in seeds]))
    for other, bar in ((peer.venv, chosen.bar), ("serial", chosen.serial_bar)):
        if other in times and bar is not None:
            label = f"asynchronous / {other}, {task}"
            bench.check(label, times["asynchronous"] / times[other], bar, "of the time")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
