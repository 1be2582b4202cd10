# SPDX-License-Identifier: Apache-2.0
"""Fusion, first meaning: calls removed. Many steps in one call from Python, against one a call.

The same kernel, environments, actions and outputs on one thread; only the steps a call does differ.
"""

import sys

from harness import Benchmark, collecting, make

STEPS = 512


def main() -> int:
    """By number of environments and by steps a call."""
    bench = Benchmark("fusion_calls", __doc__)
    for num_envs in (1, 4, 16, 64, 1024):
        for fused_steps in (8, 64, STEPS):
            fused = make(
                "CartPole-v1", "native-fused", num_envs, STEPS, fused_steps=fused_steps, threads=1
            )
            single = make("CartPole-v1", "native", num_envs, STEPS)
            bar = 11.3 if num_envs == 1 and fused_steps == STEPS else None
            bench.compare(
                f"N={num_envs}, {fused_steps} steps a call / 1",
                collecting(fused),
                collecting(single),
                bar,
            )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
