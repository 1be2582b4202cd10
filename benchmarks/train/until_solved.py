# SPDX-License-Identifier: Apache-2.0
"""Wall-clock time from process start until solved, against the frameworks people use.

Each framework runs with its recommended settings, several seeds, one after another and in turn. Our
run is the plain command, once with an empty compilation cache and once with the cache that this
left. The medians of the seeds are compared. What we stopped at must still be solved over 100 fresh
episodes of Gymnasium's own class, or the run does not count. A peer that never got there counts
with the time at which it gave up, which flatters it.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from contestants import Contestant, Run, run_ours, run_peer
from harness import Benchmark
from peer import PeerError, PeerMissing

COLD, WARM = "headrace cold", "headrace warm"
SMALL, LARGE = "headrace cold, 64x64", "headrace cold, 256x256"
SB3 = Contestant(
    "Stable-Baselines3", "sb3", "stable_baselines.py", ("--package", "stable_baselines3")
)
SBX = Contestant("SBX", "sbx", "stable_baselines.py", ("--package", "sbx"))
PUFFER = Contestant("PufferLib", "pufferlib", "pufferlib_until.py")
PUFFER_SOON = Contestant(
    "PufferLib, small batches", "pufferlib", "pufferlib_until.py", ("--settings", "soon")
)
REJAX = Contestant("rejax", "rejax", "rejax_until.py")
SAMPLE_FACTORY = Contestant("Sample Factory", "sample_factory", "sample_factory_until.py")
RLLIB = Contestant("RLlib", "rllib", "rllib_until.py")
CONTESTANTS = (SB3, SBX, PUFFER, REJAX, SAMPLE_FACTORY, RLLIB)
PEERS = {
    "ppo-cartpole": (SB3, SBX, PUFFER, PUFFER_SOON, REJAX, SAMPLE_FACTORY, RLLIB),
    "sac-pendulum": (SB3, SBX, REJAX),
}
OURS = {"ppo-cartpole": (COLD, WARM), "sac-pendulum": (COLD, WARM, SMALL, LARGE)}
FLAGS = {SMALL: ("--hidden", "64", "64"), LARGE: ("--hidden", "256", "256")}
SAME_NETWORKS = {SMALL: (REJAX.name,), LARGE: (SB3.name, SBX.name)}
"""Whose networks these are: they are compared with no others."""
BARS = {
    "ppo-cartpole": {
        (COLD, SB3.name): 1 / 3,
        (COLD, PUFFER.name): 1 / 2,
        (COLD, REJAX.name): 1 / 4,
        (WARM, SB3.name): 1 / 5,
        (WARM, PUFFER.name): 1 / 4,
    },
    "sac-pendulum": {
        (COLD, SB3.name): 1 / 8,
        (COLD, SBX.name): 1 / 5,
        (COLD, REJAX.name): 1 / 2,
    },
}
"""How much of the peer's time ours may take; pairs without a bar are shown all the same."""


def selected(text: str, task: str) -> list[str]:
    """Who races at this task, of those named: peers by the name that they install by."""
    given = text.split(",")
    ours = OURS[task] if "headrace" in given else ()
    return [*(who.name for who in PEERS[task] if who.venv in given), *ours]


def race(bench: Benchmark, task: str, seed: int, names: list[str]) -> list[Run]:
    """One run of each, in turn."""
    runs: list[Run] = []

    def add(run: Run) -> None:
        runs.append(run)
        print(run.row(), flush=True)

    def compete(who: Contestant) -> None:
        try:
            add(run_peer(who, task, seed, prefix))
        except PeerError as error:  # the others' runs are not lost for it
            print(error, flush=True)
            raise PeerMissing(f"{who.name} failed at {task}, seed {seed}") from error

    prefix = bench.arguments.prefix
    for who in PEERS[task]:
        if who.name in names:
            bench.with_peer(lambda who=who: compete(who))
    with tempfile.TemporaryDirectory(prefix="headrace-cache-") as scratch:
        cache = Path(scratch) / "cache"
        for name in OURS[task]:
            if name not in names:
                continue
            if name != WARM:  # which finds what the cold run before it left
                shutil.rmtree(cache, ignore_errors=True)
            add(run_ours(name, task, seed, cache, prefix, FLAGS.get(name, ())))
    return runs


def compare(bench: Benchmark, task: str, runs: list[Run]) -> None:
    """Ratios of medians, with the bars."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.contestant, []).append(run)
    print(f"\n{task}: seconds until solved, all seeds (median)")
    for name, group in groups.items():
        listed = "  ".join(f"{r.seconds:.2f}" + ("" if r.solved else "!") for r in group)
        print(f"  {name:24} {listed}   ({_median(group):.2f})")
    for ours in OURS[task]:
        for who in PEERS[task]:
            if ours not in groups or who.name not in groups:
                continue
            if who.name not in SAME_NETWORKS.get(ours, (who.name,)):
                continue
            ratio = _median(groups[ours]) / _median(groups[who.name])
            bench.check_ratio(
                f"{task}: {ours} / {who.name}",
                ratio,
                BARS[task].get((ours, who.name)),
                valid=all(run.solved for run in groups[ours]),
            )


def _median(runs: list[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def main() -> int:
    """Everything, or what the flags select."""
    bench = Benchmark(
        "train_until_solved",
        __doc__,
        seeds="0,1,2",
        tasks=",".join(PEERS),
        only="headrace," + ",".join(who.venv for who in CONTESTANTS),
        keep=0,  # 1: beside these, what the file of results holds already
        prefix="",  # a command before each run, to wait for an idle machine for instance
    )
    asked = bench.arguments
    runs: list[Run] = []
    for task in asked.tasks.split(","):
        names = selected(asked.only, task)
        for seed in map(int, asked.seeds.split(",")):
            runs += race(bench, task, seed, names)
    if asked.keep and asked.json.exists():
        done = {(run.contestant, run.task, run.seed) for run in runs}
        before = [Run(**run) for run in json.loads(asked.json.read_text())["runs"]]
        runs += [run for run in before if (run.contestant, run.task, run.seed) not in done]
    runs.sort(key=lambda run: (run.task, run.contestant, run.seed))
    bench.extra = {"runs": [run.to_json() for run in runs]}
    for task in PEERS:
        if any(run.task == task for run in runs):
            compare(bench, task, [run for run in runs if run.task == task])
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
