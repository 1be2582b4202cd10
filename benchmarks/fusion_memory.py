# SPDX-License-Identifier: Apache-2.0
"""Fusion, second meaning: memory traffic removed.

Memory-v0 reads and writes its whole state in every step. Unfused, every environment takes a step
before any takes the next, so the states, four times the last-level cache together, pass through
memory once a step; fused, a block of environments that fits a cache takes all its steps first. Both
loops are C++ on one thread, with the same actions and outputs. Beside the gain stands the bandwidth
at which a buffer of one state's size can be read and written back: the gain is the ratio of two of
these.
"""

import os
import sys
from pathlib import Path

import matplotlib
import numpy as np
from harness import RESULTS, Benchmark, collecting, make

from headrace import _native
from headrace.envs.native import default_isa

STEPS = 16
STATE_BYTES = (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)


def last_level_cache() -> int:
    """Bytes of the largest cache."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1))
    return max(sizes, default=32 << 20)


def bandwidth(size: int, seconds: float) -> float:
    """Bytes/s read and written back in a buffer of this size."""
    buffer = np.ones(max(size, 64) // 4, np.uint32)
    return _native.update_bandwidth(buffer, seconds, default_isa())


def plot(curve: list[dict[str, float]], path: Path) -> None:
    """The gain by state size, over the bandwidth by buffer size."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.5, 7), sharex=True, layout="constrained")
    sizes = [row["state_bytes"] for row in curve]
    top.plot(sizes, [row["gain"] for row in curve], "o-", color="tab:blue")
    top.axhline(1, color="grey", linewidth=0.8)
    top.set(ylabel=f"{STEPS} steps fused / unfused", title="Memory-v0: what fusing steps gains")
    bottom.plot(
        sizes,
        [row["bandwidth"] / 1e9 for row in curve],
        "s-",
        color="tab:orange",
        label="read and write back, buffer of this size",
    )
    bottom.plot(
        sizes,
        [row["fused_traffic"] / 1e9 for row in curve],
        "o--",
        color="tab:blue",
        label="state traffic, fused",
    )
    bottom.plot(
        sizes,
        [row["unfused_traffic"] / 1e9 for row in curve],
        "o:",
        color="tab:red",
        label="state traffic, unfused",
    )
    bottom.set(xscale="log", yscale="log", xlabel="state, bytes", ylabel="GB/s")
    bottom.set_xticks(sizes, [_short(size) for size in sizes])
    bottom.minorticks_off()
    bottom.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _short(size: float) -> str:
    for limit, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= limit:
            return f"{size / limit:g} {unit}"
    return f"{size:g} B"


def main() -> int:
    """The curve."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    bench = Benchmark("fusion_memory", __doc__)
    total = 4 * last_level_cache()
    curve = []
    for size in STATE_BYTES:
        num_envs = max(total // size, 1)
        shared = {"threads": 1, "state_bytes": size}
        fused = make("Memory-v0", "native-fused", num_envs, STEPS, **shared)
        unfused = make("Memory-v0", "native-fused", num_envs, STEPS, fused_steps=1, **shared)
        result = bench.compare(
            f"{_short(size)} a state, N={num_envs}", collecting(fused), collecting(unfused)
        ).to_json()
        curve.append(
            {
                "state_bytes": size,
                "gain": result["ratio"],
                "bandwidth": bandwidth(size, bench.arguments.seconds),
                "fused_traffic": result["ours"] * 2 * size,
                "unfused_traffic": result["theirs"] * 2 * size,
            }
        )
        print(
            f"{'':32} read-and-write-back {curve[-1]['bandwidth'] / 1e9:.1f} GB/s; state traffic "
            f"fused {curve[-1]['fused_traffic'] / 1e9:.1f}, "
            f"unfused {curve[-1]['unfused_traffic'] / 1e9:.1f}"
        )
        del fused, unfused
    bench.extra = {
        "curve": curve,
        "memory_bandwidth": bandwidth(total, bench.arguments.seconds),
        "total_state_bytes": total,
    }
    print(f"memory: {bench.extra['memory_bandwidth'] / 1e9:.1f} GB/s")
    plot(curve, RESULTS / "fusion_memory.png")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
