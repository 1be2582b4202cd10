# SPDX-License-Identifier: Apache-2.0
"""Fusion, first meaning: calls removed. Many steps in one call from Python, against one a call.

The same kernel and environments on one thread, all outputs written. One step a call comes in two
forms: `step(actions)` of the vector environment, as a Python program calls it (views, nothing
copied), and the bare native call behind it, which is all that the `native` rung does.
"""

import sys

import numpy as np
from harness import Benchmark, collecting, make, repeat
from timing import Rate

import headrace

STEPS = 512


def by_steps(num_envs: int) -> Rate:
    """One `step(actions)` of the vector environment after another, with actions drawn before."""
    envs = headrace.make_vec(
        "CartPole-v1", num_envs=num_envs, copy=False, autoreset="same_step", threads=1
    )
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=(64, num_envs))

    def round_of_steps() -> None:
        step = envs.step
        for row in actions:
            step(row)

    return repeat(round_of_steps, 64 * num_envs)


def main() -> int:
    """By number of environments and by steps a call."""
    bench = Benchmark("fusion_calls", __doc__)
    for num_envs in (1, 4, 16, 64, 1024):
        single = make("CartPole-v1", "native", num_envs, STEPS)
        for fused_steps in (8, 64, STEPS):
            fused = make(
                "CartPole-v1", "native-fused", num_envs, STEPS, fused_steps=fused_steps, threads=1
            )
            bar = 11.3 if num_envs == 1 and fused_steps == STEPS else None
            label = f"N={num_envs}, {fused_steps} steps a call"
            bench.compare(f"{label} / step()", collecting(fused), by_steps(num_envs), bar)
            bench.compare(f"{label} / native call", collecting(fused), collecting(single))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
