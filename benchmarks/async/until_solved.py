# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's own classes, learnt asynchronously and serially, until solved; against peers.

From process start until the evaluation that reaches the bar (ours: until the process has ended),
with a cold compilation cache for the first seed; what was saved must still reach the bar over 100
fresh episodes. SAC is `headrace train` as it is, with the environment's preset in both modes. A
peer that is not solved within its limit is counted with the limit, which is said.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "train")]
from contestants import Contestant, Run, run_ours, run_peer  # noqa: E402
from harness import Benchmark  # noqa: E402

SHARED = ("--definition", "gym", "--no-plot")


@dataclass(frozen=True)
class Setting:
    """A task: our flags in both modes, the peer, and what share of its time ours may take."""

    both: tuple[str, ...]
    asynchronous: tuple[str, ...]
    serial: tuple[str, ...]
    peer: Contestant
    bar: float
    serial_bar: float | None = None


STABLE = Contestant(
    "Stable-Baselines3", "sb3", "stable_baselines.py", ("--package", "stable_baselines3")
)
SETTINGS = {
    "sac-pendulum": Setting(
        (),
        (),
        (),
        STABLE,
        0.27,
        1.05,
    ),
    "sac-double-pendulum": Setting((), (), (), STABLE, 0.27),
    "ppo-cartpole": Setting(
        ("--preset", "none", "--num-envs", "32", "--steps", "32", "--epochs", "6",
         "--learning-rate", "1e-3", "--discount", "0.98", "--trace", "0.8",
         "--evaluation-every", "4096"),
        ("--no-tune", "--samplers", "1", "--staleness", "2"),
        (),
        Contestant("Sample Factory", "sample_factory", "sample_factory_until.py"),
        0.25,
    ),
}  # fmt: skip
"""The peers' environment steps a second are in their rows as well."""


def main() -> int:
    """One task."""
    bench = Benchmark(
        "async_until_solved",
        __doc__,
        seeds=3,
        peer_seeds=3,
        task="sac-pendulum",
        prefix="",  # a command before each run, to wait for an idle machine for instance
    )
    task, prefix = bench.arguments.task, bench.arguments.prefix
    chosen = SETTINGS[task]
    cache = Path(tempfile.mkdtemp(prefix="headrace-bench-cache-"))
    times: dict[str, float] = {}

    def race(name: str, run_seed: Callable[[int], Run], count: int, *, ours: bool) -> None:
        runs = []
        for seed in range(count):
            runs.append(run := run_seed(seed))
            late = "" if run.solved or ours else "   counted with its limit: no less than that"
            print(run.row() + late, flush=True)
        counts = all(run.solved for run in runs) or not ours
        times[name] = statistics.mean(run.seconds for run in runs) if counts else float("inf")
        bench.extra[name] = [run.to_json() for run in runs]

    ours = {
        "asynchronous": ("--mode", "async", *chosen.asynchronous),
        "serial": ("--mode", "serial", *chosen.serial),
    }
    for name, flags in ours.items():
        every = (*SHARED, *chosen.both, *flags)

        def one(seed: int, name: str = name, every: tuple[str, ...] = every) -> Run:
            return run_ours(name, task, seed, cache, prefix, every)

        race(name, one, bench.arguments.seeds, ours=True)
    peer, count = chosen.peer, bench.arguments.peer_seeds
    bench.with_peer(
        lambda: race(peer.venv, lambda seed: run_peer(peer, task, seed, prefix), count, ours=False)
    )
    for other, bar in ((peer.venv, chosen.bar), ("serial", chosen.serial_bar)):
        if other in times and bar is not None:
            label = f"asynchronous / {other}, {task}"
            bench.check(label, times["asynchronous"] / times[other], bar, "of the time")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
