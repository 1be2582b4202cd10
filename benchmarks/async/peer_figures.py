# SPDX-License-Identifier: Apache-2.0
"""What the peers of the asynchronous run reach on this machine, each with its own settings.

SAC on HalfCheetah-v5: environment steps and update frames a second, once learning. Sample
Factory's asynchronous PPO on CartPole, and Stable-Baselines3's SAC on InvertedDoublePendulum-v5:
time from process start until solved, and the rate of the loop.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark
from train.contestants import Contestant, report_of


def stable(package: str, *more: str) -> tuple[str, ...]:
    """Arguments for the script that Stable-Baselines3 and SBX share."""
    return ("--package", package, *more)


SCRIPT = "stable_baselines.py"
SB3, SBX = "stable_baselines3", "sbx"
LARGE = ("--batch", "8192")
PAIRS = (
    ("sac-cheetah", Contestant("Stable-Baselines3", "sb3", SCRIPT, stable(SB3))),
    ("sac-cheetah", Contestant("Stable-Baselines3, 8192", "sb3", SCRIPT, stable(SB3, *LARGE))),
    ("sac-cheetah", Contestant("SBX", "sbx", SCRIPT, stable(SBX))),
    ("sac-cheetah", Contestant("SBX, 8192", "sbx", SCRIPT, stable(SBX, *LARGE))),
    ("sac-cheetah", Contestant("RLlib", "rllib", "rllib_until.py", limit=300.0)),
    ("sac-cheetah", Contestant("RLlib, 8192", "rllib", "rllib_until.py", LARGE, 300.0)),
    ("ppo-cartpole", Contestant("Sample Factory", "sample_factory", "sample_factory_until.py")),
    (
        "sac-double-pendulum",
        Contestant("Stable-Baselines3", "sb3", SCRIPT, stable(SB3), limit=1200.0),
    ),
)


def main() -> int:
    """One after another, those whose install name is asked for."""
    every = ",".join(dict.fromkeys(who.venv for _, who in PAIRS))
    bench = Benchmark(
        "async_peers",
        __doc__,
        only=every,
        tasks=",".join(dict.fromkeys(task for task, _ in PAIRS)),
        seed=0,
        prefix="",  # a command before each run, to wait for an idle machine for instance
    )
    asked = bench.arguments
    reports = bench.extra.setdefault("reports", [])

    def figure(task: str, who: Contestant) -> None:
        report = report_of(who, task, asked.seed, asked.prefix)
        if "frames_rate" in report:
            outcome = f"{report['frames_rate']:,.0f} update frames/s"
        else:
            outcome = "solved" if report.get("solved") else "not solved"
            outcome += f" after {report.get('seconds', who.limit):.1f} s"
        rate = report.get("train_rate", 0.0)
        print(f"{task:20} {who.name:24} {rate:9,.1f} steps/s   {outcome}", flush=True)
        reports.append(report)

    for task, who in PAIRS:
        if who.venv in asked.only.split(",") and task in asked.tasks.split(","):
            bench.with_peer(lambda task=task, who=who: figure(task, who))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
