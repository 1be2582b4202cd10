# SPDX-License-Identifier: Apache-2.0
"""A long run at full speed: memory flat, rates flat, no handle or segment of memory left open.

The first sixth, in which buffers fill and pages are touched, does not count. Of the rest, the first
and the last quarter are compared: no process's peak of resident memory may grow by more than 5 %,
no median rate fall by more than 20 % (the machine is not ours alone), no process have more
descriptors or mappings open. None may die meanwhile; and when the run has ended, none is left, and
no segment of shared memory. The agent is filmed thirty times, so that each quarter has that too.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Benchmark

from headrace.runtime.status import Status, StatusReader

Who = tuple[str, int]
"""Role, and which of it."""
WARM_UP = 1 / 6
SLACK = 0.1
"""Of the time: what a run takes to begin to learn, or ends early."""
SHM = Path("/dev/shm")


@dataclass(frozen=True)
class Sample:
    """The run at one moment."""

    elapsed: float
    updates: int
    sampling: float
    update: float
    memory: dict[str, int]
    """Resident bytes, by process."""
    descriptors: dict[str, int]
    mappings: dict[str, int]


def sample(status: Status) -> Sample:
    """As the run says, and as the system does."""
    named = {f"{one.role} {one.index}": one for one in status.processes if one.pid}
    return Sample(
        status.elapsed,
        status.updates,
        status.rates.sampling,
        status.rates.update,
        {name: one.memory for name, one in named.items() if one.memory},
        {name: count for name, one in named.items() if (count := descriptors(one.pid))},
        {name: count for name, one in named.items() if (count := mappings(one.pid))},
    )


def descriptors(pid: int) -> int:
    """How many a process has open; 0 where it has ended."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def mappings(pid: int) -> int:
    """Of memory and files into a process; 0 where it has ended."""
    try:
        return len(Path(f"/proc/{pid}/maps").read_bytes().splitlines())
    except OSError:
        return 0


def growth(samples: list[Sample], values: Callable[[Sample], dict[str, int]]) -> dict[str, float]:
    """Of each process: the peak of the last quarter over that of the first, less 1."""
    quarter = max(1, len(samples) // 4)
    first, last = (
        {name: max(values(one).get(name, 0) for one in part) for name in values(samples[-1])}
        for part in (samples[:quarter], samples[-quarter:])
    )
    return {name: last[name] / first[name] - 1 for name in last if first[name]}


def fall(samples: list[Sample], rate: str) -> float:
    """The median of the last quarter under that of the first, as a fraction of it."""
    quarter = max(1, len(samples) // 4)
    first, last = (
        statistics.median(getattr(one, rate) for one in part)
        for part in (samples[:quarter], samples[-quarter:])
    )
    return 1 - last / first if first else 1.0


def watched(
    process: subprocess.Popen[bytes], folder: Path
) -> tuple[list[Sample], dict[int, Who], int]:
    """Twice a second until it has ended: samples, all processes there were, and restarts."""
    reader, samples = StatusReader(folder), []
    pids: dict[int, Who] = {}
    restarts = 0
    while process.poll() is None:
        time.sleep(0.5)
        status = reader.newest()
        if status is None or status.state != "running":
            continue
        pids |= {one.pid: (one.role, one.index) for one in status.processes if one.pid}
        restarts = max(restarts, sum(one.restarts for one in status.processes))
        if not samples or status.elapsed > samples[-1].elapsed:
            samples.append(sample(status))
    return samples, pids, restarts


def main() -> int:
    """One run, watched."""
    bench = Benchmark("soak", __doc__, minutes=30.0, env="Pendulum-v1", algo="sac")
    arguments = bench.arguments
    folder = Path(tempfile.mkdtemp(prefix="headrace-soak-")) / "run"
    seconds = 60 * arguments.minutes
    segments = set(SHM.iterdir()) if SHM.is_dir() else set()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "train", arguments.env, "--algo", arguments.algo,
         "--mode", "async", "--definition", "gym", "--preset", "none", "--no-tune",
         "--samplers", "1", "--envs-per-sampler", "8", "--replay-size", "20000",
         "--time-limit", str(seconds),
         "--total-steps", "1000000000000", "--video-every", str(seconds / 30),
         "--out", str(folder), "--no-plot", "--quiet"],
    )  # fmt: skip
    samples, pids, restarts = watched(process, folder)
    left = (set(SHM.iterdir()) if SHM.is_dir() else set()) - segments
    counted = [one for one in samples if one.elapsed > WARM_UP * seconds and one.updates]
    bench.extra = {
        "minutes": arguments.minutes,
        "samples": [asdict(one) for one in samples[:: max(1, len(samples) // 200)]],
        "videos": len(list((folder / "videos").glob("*.gif"))),
    }
    bench.check("the run ended with", process.returncode, 0, "as its exit code")
    watched_for = counted[-1].elapsed - counted[0].elapsed if counted else 0.0
    bench.check("not watched", 1 - watched_for / seconds, WARM_UP + SLACK, "of the time")
    if len(counted) < 2:
        print(f"only {len(counted)} moments of it were seen: it was too short to tell")
        return bench.finish() or 1
    for name, more in sorted(growth(counted, lambda one: one.memory).items()):
        bench.check(f"memory of the {name} grows by", 100 * more, 5.0, "%")
    for rate in ("sampling", "update"):
        bench.check(f"{rate} rate falls by", 100 * fall(counted, rate), 20.0, "%")
    for what, most in (("descriptors", 1.0), ("mappings", 5.0)):
        found = growth(counted, lambda one, what=what: getattr(one, what))
        bench.check(f"{what} grow by", 100 * max(found.values()), most, "%")
    bench.check("processes restarted", restarts, 0, "")
    alive = [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
    bench.check("processes left", len(alive), 0, "")
    bench.check("segments of memory left", len(left), 0, "")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
