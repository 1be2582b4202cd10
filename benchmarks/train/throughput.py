# SPDX-License-Identifier: Apache-2.0
"""Environment steps a second with learning included, on CartPole by PPO, at settings that solve it.

PufferLib's own loop over its C CartPole, and rejax's single program, against our compiled trainer
with its preset for throughput. Every run first has to solve the environment; then it learns on and
is timed, without evaluations.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from contestants import Contestant, report_of, timed
from harness import Benchmark
from timing import format_rate

STEADY = ("--steady", "5")
PEERS = (
    (
        Contestant(
            "PufferLib", "pufferlib", "pufferlib_until.py", ("--settings", "fast", *STEADY), 60.0
        ),
        3.0,
    ),
    (Contestant("rejax", "rejax", "rejax_until.py", STEADY, 60.0), 6.0),
)
"""With the bars: how many times their rate ours has to be."""
BAR = 475.0


def ours(seed: int, prefix: str) -> tuple[float, bool]:
    """The rate of a long run, and whether a run with the same settings solves it."""
    command = [str(Path(sys.executable).with_name("headrace")), "train", "CartPole-v1"]
    command += ["--preset", "throughput", "--seed", str(seed), "--no-plot"]
    with tempfile.TemporaryDirectory(prefix="headrace-throughput-") as scratch:
        solving, long = Path(scratch, "solving"), Path(scratch, "long")
        timed([*command, "--until", str(BAR), "--out", str(solving)], 120.0, prefix)
        # An evaluation at the end alone: what is timed is the loop.
        endless = ["--total-steps", "10000000", "--evaluation-every", "10000000"]
        timed([*command, *endless, "--out", str(long)], 120.0, prefix)
        solved = json.loads((solving / "result.json").read_text())["ending"] == "until"
        rows = [json.loads(line) for line in (long / "metrics.jsonl").read_text().splitlines()]
    # From the first line on, which is written when the program has been compiled.
    first, last = rows[0], rows[-1]
    rate = (last["env_steps"] - first["env_steps"]) / (last["seconds"] - first["seconds"])
    return rate, solved


def main() -> int:
    """Seeds in turn; medians."""
    bench = Benchmark("train_throughput", __doc__, seeds=3, prefix="")
    seeds, prefix = range(bench.arguments.seeds), bench.arguments.prefix
    mine = [ours(seed, prefix) for seed in seeds]
    rates = [rate for rate, _ in mine]
    print("headrace:", "  ".join(format_rate(rate) for rate in rates), flush=True)
    bench.extra = {"ours": mine, "theirs": {}}

    def against(who: Contestant, bar: float | None) -> None:
        reports = [report_of(who, "ppo-cartpole", seed, prefix) for seed in seeds]
        theirs = [report.get("steady_rate", 0.0) for report in reports]
        solved = [bool(report.get("solved")) for report in reports]
        print(f"{who.name}:", "  ".join(format_rate(rate) for rate in theirs), solved, flush=True)
        bench.extra["theirs"][who.name] = reports
        bench.check_rate(
            f"headrace / {who.name}",
            statistics.median(rates),
            statistics.median(theirs),
            bar,
            valid=all(done for _, done in mine),
        )

    for who, bar in PEERS:
        bench.with_peer(lambda who=who, bar=bar: against(who, bar))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
