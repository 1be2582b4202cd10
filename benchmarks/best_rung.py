# SPDX-License-Identifier: Apache-2.0
"""The fastest rung, and the `python` rung, against a bare Gymnasium loop.

Everyone does all of the work: random actions, auto-reset, every transition kept (the bare loop, as
such loops do, keeps none: in its favour). The loop is benchmarks/peers/gymnasium_loop.py, in its
own virtual environment.
"""

import sys

from harness import Benchmark, collecting, make
from peer import Peer

SHAPES = ((2048, 64), (4096, 32), (8192, 32), (16384, 16))
"""Environments x steps to choose the best from."""


def main() -> int:
    """Both tasks, both rungs."""
    bench = Benchmark("best_rung", __doc__)

    def against_the_loop(env: str, bar: float) -> None:
        with Peer("gymnasium", "gymnasium_loop.py", "--env", env) as loop:
            candidates = {}
            for num_envs, steps in SHAPES:
                collector = make(env, "native-fused", num_envs, steps)
                candidates[collecting(collector)(bench.arguments.seconds)] = collector
            best = candidates[max(candidates)]
            shape = f"{best.request.num_envs} x {best.request.steps}"
            bench.compare(f"{env} native-fused {shape}", collecting(best), loop.rate, bar)
            with make(env, "python", 1, 4096) as plain:
                bench.compare(f"{env} python rung", collecting(plain), loop.rate, 0.9)

    bench.with_peer(lambda: against_the_loop("CartPole-v1", 5000))
    bench.with_peer(lambda: against_the_loop("Pendulum-v1", 4000))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
