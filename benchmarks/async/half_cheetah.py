# SPDX-License-Identifier: Apache-2.0
"""SAC on HalfCheetah-v5: environment steps and update frames a second, in one run, against peers.

Ours is `headrace train` as it is: samplers, learner and evaluator at work, rates as the run itself
records them. The bars: 20 times Stable-Baselines3's environment steps (at its batch of 256, where
it makes most of them) while learning from 1.2 times as many transitions a second as the best of
Stable-Baselines3 and SBX at a batch of 8192.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark
from peer import VENVS, WORKERS, PeerMissing

from headrace.runtime.status import Status, StatusReader

ENV = "HalfCheetah-v5"


def peer(framework: str, batch_size: int, seconds: float) -> dict[str, float]:
    """Its rates."""
    python = VENVS / framework / "bin" / "python"
    if not python.exists():
        raise PeerMissing(
            f"{framework} is not installed: python benchmarks/peers/install.py {framework}"
        )
    command = [python, WORKERS / "sac_run.py", "--framework", framework]
    command += ["--batch-size", str(batch_size), "--seconds", str(seconds), "--env", ENV]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def ours(seconds: float, sampling_rate: float, largest_batch: int) -> list[Status]:
    """What a run recorded once it was going at full speed."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-")) / "run"
    subprocess.run(
        [sys.executable, "-m", "headrace", "train", ENV, "--algo", "sac", "--mode", "async",
         "--preset", "none", "--sampling-rate", str(sampling_rate), "--largest-batch",
         str(largest_batch), "--time-limit", str(seconds), "--total-steps", "1000000000",
         "--out", str(folder), "--no-plot", "--evaluation-every", "20000",
         "--evaluation-episodes", "2"],
        check=True,
    )  # fmt: skip
    every = [one for one in StatusReader(folder).more() if one.state == "running"]
    return every[len(every) // 2 :]


def main() -> int:
    """Ours, then the peers."""
    bench = Benchmark("half_cheetah", __doc__, run=45.0, sampling=1600.0, batch=8192, peers=10.0)
    arguments = bench.arguments
    statuses = ours(arguments.run, arguments.sampling, arguments.batch)
    steps = statistics.median(one.rates.sampling for one in statuses)
    frames = statistics.median(one.rates.update_frames for one in statuses)
    settings = statuses[-1].settings
    print(f"ours: {steps:,.0f} steps/s, {frames:,.0f} update frames/s, {settings}", flush=True)
    bench.extra = {"steps": steps, "frames": frames, "settings": settings, "peers": {}}

    def row(label: str, value: float, theirs: float, bar: float) -> None:
        verdict = "reached" if value >= bar * theirs else "MISSED"
        print(f"{label:52} {value:,.0f} / {theirs:,.0f} = {value / theirs:.2f}   bar {bar:g}: "
              f"{verdict}", flush=True)  # fmt: skip
        bench.rows.append({"label": label, "bar": bar, "ratio": value / theirs})

    def sampling() -> None:
        found = peer("sb3", 256, arguments.peers)
        bench.extra["peers"]["sb3 256"] = found
        row("steps/s against Stable-Baselines3, batch 256", steps, found["steps"], 20.0)

    def updating() -> None:
        both = {name: peer(name, 8192, arguments.peers) for name in ("sb3", "sbx")}
        bench.extra["peers"] |= {f"{name} 8192": found for name, found in both.items()}
        best = max(both, key=lambda name: both[name]["frames"])
        row(f"update frames/s against {best}, batch 8192", frames, both[best]["frames"], 1.2)

    bench.with_peer(sampling)
    bench.with_peer(updating)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
