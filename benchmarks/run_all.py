# SPDX-License-Identifier: Apache-2.0
"""Every benchmark, one after another; peers are installed first."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = (
    "best_rung",
    "vector_env",
    "processes",
    "mpi",
    "chess_peers",
    "native_xla",
    "xla_vs_torch",
    "fusion_calls",
    "fusion_memory",
    "import_time",
    "sac_update",
    "async/ring",
    "async/sampling",
    "async/half_cheetah",
    "async/cart_pole",
    "async/tuner",
    "async/until_solved",
    "async/costly_sampling",
    "train/residual_update",
    "train/throughput",
    "train/until_solved",
)

PEERS = (
    *("gymnasium", "envpool", "pufferlib", "chess", "openspiel", "gymnax"),
    *("sb3", "sbx", "rejax", "sample_factory", "rllib"),
)


def main() -> int:
    """Run them all even where one misses its bar; the exit code says whether any did."""
    subprocess.run(
        [sys.executable, HERE / "peers" / "install.py", *PEERS],
        check=True,
    )
    codes = []
    for name in BENCHMARKS:
        print(f"\n== {name}", flush=True)
        codes.append(subprocess.run([sys.executable, HERE / f"{name}.py"], check=False).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
