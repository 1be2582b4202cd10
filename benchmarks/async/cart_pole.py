# SPDX-License-Identifier: Apache-2.0
"""Asynchronous PPO on CartPole as a Gymnasium class: environment steps a second, learning.

Ours against Sample Factory's, with the settings that its own example recommends: its whole training
loop until the environment is solved, evaluations left out; of ours the second half of a run that
goes on after that. The bar: three times its steps.
"""

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark
from train.contestants import Contestant, report_of

from headrace.runtime.status import StatusReader

PEER = Contestant("Sample Factory", "sample_factory", "sample_factory_until.py")


def ours(seconds: float, prefix: str) -> tuple[float, float]:
    """Environment steps a second, and the best evaluation."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-")) / "run"
    subprocess.run(
        [*shlex.split(prefix), sys.executable, "-m", "headrace", "train", "CartPole-v1",
         "--algo", "ppo", "--mode", "async", "--definition", "gym", "--preset", "none",
         "--no-tune", "--samplers", "1", "--num-envs", "64", "--steps", "32", "--epochs", "4",
         "--learning-rate", "2e-3", "--discount", "0.98", "--trace", "0.8",
         "--evaluation-every", "100000", "--time-limit", str(seconds),
         "--total-steps", "1000000000", "--out", str(folder), "--no-plot"],
        check=True,
    )  # fmt: skip
    every = [one for one in StatusReader(folder).more() if one.state == "running"]
    rate = statistics.median(one.rates.sampling for one in every[len(every) // 2 :])
    return rate, json.loads((folder / "result.json").read_text())["best"]["mean"]


def main() -> int:
    """Ours, then the peer."""
    bench = Benchmark("cart_pole", __doc__, run=20.0, prefix="")
    rate, best = ours(bench.arguments.run, bench.arguments.prefix)
    print(f"ours: {rate:,.0f} steps/s, best evaluation {best:.0f}", flush=True)
    bench.extra = {"steps": rate, "best": best}

    def against() -> None:
        report = report_of(PEER, "ppo-cartpole", 0, bench.arguments.prefix)
        bench.extra["peer"] = report
        label = "steps, Sample Factory"
        bench.check_rate(label, rate, report["train_rate"], 3.0, valid=best >= 475.0)

    bench.with_peer(against)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
