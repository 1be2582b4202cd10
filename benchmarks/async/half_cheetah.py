# SPDX-License-Identifier: Apache-2.0
"""SAC on HalfCheetah-v5: environment steps and update frames a second, in one run, against peers.

Ours is `headrace train` as it is: samplers, learner and evaluator at work, rates as the run itself
records them. The bars: 20 times Stable-Baselines3's environment steps (at its batch of 256, where
it makes most of them) while learning from 1.2 times as many transitions a second as the best of
Stable-Baselines3 and SBX at a batch of 8192; and ten times both of RLlib's, with the settings of
its own example.
"""

import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark
from train.contestants import Contestant, report_of

from headrace.runtime.status import Status, StatusReader

ENV, TASK = "HalfCheetah-v5", "sac-cheetah"
SCRIPT = "stable_baselines.py"
LARGE = ("--batch", "8192", "--threads", "2")
SB3 = Contestant("SB3", "sb3", SCRIPT, ("--package", "stable_baselines3"))
SB3_LARGE = Contestant("SB3, 8192", "sb3", SCRIPT, ("--package", "stable_baselines3", *LARGE))
SBX_LARGE = Contestant("SBX, 8192", "sbx", SCRIPT, ("--package", "sbx", *LARGE))
RLLIB = Contestant("RLlib", "rllib", "rllib_until.py", limit=300.0)
STEADY_S = {"rllib": 60.0}
"""What a rate is measured over, where it is not what was asked for: RLlib tells it in steps."""


def ours(seconds: float, sampling_rate: float, largest_batch: int, prefix: str) -> list[Status]:
    """What a run recorded once it was going at full speed."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-")) / "run"
    subprocess.run(
        [*shlex.split(prefix), sys.executable, "-m", "headrace", "train", ENV, "--algo", "sac",
         "--mode", "async", "--preset", "none", "--sampling-rate", str(sampling_rate),
         "--largest-batch", str(largest_batch), "--time-limit", str(seconds),
         "--total-steps", "1000000000", "--out", str(folder), "--no-plot",
         "--evaluation-every", "20000", "--evaluation-episodes", "2"],
        check=True,
    )  # fmt: skip
    every = [one for one in StatusReader(folder).more() if one.state == "running"]
    return every[len(every) // 2 :]


def main() -> int:
    """Ours, then the peers."""
    bench = Benchmark(
        "half_cheetah",
        __doc__,
        run=45.0,
        sampling=2400.0,
        batch=8192,
        peers=15.0,
        prefix="",  # a command before each run, to wait for an idle machine for instance
    )
    asked = bench.arguments
    statuses = ours(asked.run, asked.sampling, asked.batch, asked.prefix)
    steps = statistics.median(one.rates.sampling for one in statuses)
    frames = statistics.median(one.rates.update_frames for one in statuses)
    settings = statuses[-1].settings
    print(f"ours: {steps:,.0f} steps/s, {frames:,.0f} update frames/s, {settings}", flush=True)
    found: dict[str, dict[str, float]] = {}
    bench.extra = {"steps": steps, "frames": frames, "settings": settings, "peers": found}

    def run(who: Contestant) -> None:
        seconds = STEADY_S.get(who.venv, asked.peers)
        timed = Contestant(
            who.name, who.venv, who.script, (*who.arguments, "--seconds", str(seconds)), who.limit
        )
        report = report_of(timed, TASK, 0, asked.prefix)
        rates = {"steps": report["train_rate"], "frames": report["frames_rate"]}
        found[who.name] = rates
        print(f"{who.name}: {rates['steps']:,.1f} steps/s, {rates['frames']:,.0f} frames/s",
              flush=True)  # fmt: skip

    for who in (SB3, SB3_LARGE, SBX_LARGE, RLLIB):
        bench.with_peer(lambda who=who: run(who))
    if SB3.name in found:
        label = "steps, SB3's best batch of 256"
        bench.check_rate(label, steps, found[SB3.name]["steps"], 20.0)
    large = [one.name for one in (SB3_LARGE, SBX_LARGE) if one.name in found]
    if large:
        best = max(large, key=lambda name: found[name]["frames"])
        bench.check_rate(f"update frames, {best}", frames, found[best]["frames"], 1.2)
    if RLLIB.name in found:
        bench.check_rate("steps, RLlib", steps, found[RLLIB.name]["steps"], 10.0)
        bench.check_rate("update frames, RLlib", frames, found[RLLIB.name]["frames"], 10.0)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
