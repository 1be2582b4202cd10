# SPDX-License-Identifier: Apache-2.0
"""A long run at full speed: memory flat, rates flat, no handle left open.

After a first tenth, in which buffers fill and pages are touched, resident memory of every process
must stay within 5 % and the rates' medians of the first and the last quarter within 20 % (the
machine is not ours alone); open descriptors must not grow.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark

from headrace.runtime.status import Status, StatusReader


def descriptors(status: Status) -> dict[tuple[str, int], int]:
    """Open ones of each process."""
    return {
        (one.role, one.index): len(list(Path(f"/proc/{one.pid}/fd").iterdir()))
        for one in status.processes
        if one.pid and Path(f"/proc/{one.pid}/fd").is_dir()
    }


def main() -> int:
    """One run, watched."""
    bench = Benchmark("soak", __doc__, minutes=30.0, env="Pendulum-v1", algo="sac")
    arguments = bench.arguments
    folder = Path(tempfile.mkdtemp(prefix="headrace-soak-")) / "run"
    seconds = 60 * arguments.minutes
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "train", arguments.env, "--algo", arguments.algo,
         "--mode", "async", "--definition", "gym", "--no-tune", "--samplers", "1",
         "--envs-per-sampler", "8", "--replay-size", "20000", "--time-limit", str(seconds),
         "--total-steps", "1000000000000", "--out", str(folder), "--no-plot", "--quiet"],
    )  # fmt: skip
    reader, statuses = StatusReader(folder), []
    first: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], int] = {}
    while process.poll() is None:
        time.sleep(0.5)
        for status in reader.more():
            if status.state == "running":
                statuses.append(status)
                if status.elapsed > 0.1 * seconds and status.live:
                    last = descriptors(status) or last
                    first = first or last
    late = [one for one in statuses if one.elapsed > 0.1 * seconds]
    for role in ("learner", "sampler", "evaluator", "supervisor"):
        sizes = [p.memory for one in late for p in one.processes if p.role == role and p.memory]
        quarter = max(1, len(sizes) // 4)
        growth = statistics.median(sizes[-quarter:]) / statistics.median(sizes[:quarter]) - 1
        bench.check(f"memory of the {role} grows by", 100 * growth, 5.0, "%")
    for name in ("sampling", "update"):
        rates = [getattr(one.rates, name) for one in late]
        quarter = max(1, len(rates) // 4)
        loss = 1 - statistics.median(rates[-quarter:]) / statistics.median(rates[:quarter])
        bench.check(f"{name} rate falls by", 100 * loss, 20.0, "%")
    grown = max(last[key] - first.get(key, last[key]) for key in last)
    bench.check("descriptors grow by", grown, 2, "")
    bench.check("processes restarted", sum(p.restarts for p in late[-1].processes), 0, "")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
