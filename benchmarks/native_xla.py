# SPDX-License-Identifier: Apache-2.0
"""The native kernel inside XLA's loop against the array definition inside it.

Both rungs run the same policy in one `lax` loop and write the same dense batch; only the
environment's step differs. With a 64 x 64 network the policy is what takes time; without one the
environment is.
"""

import sys

from harness import Benchmark, collecting, make

from headrace import MlpPolicy, spec


def main() -> int:
    """By number of environments, with a network and with random actions."""
    bench = Benchmark("native_xla", __doc__)
    network = MlpPolicy(spec("CartPole-v1"), (64, 64))
    for num_envs in (64, 1024, 8192):
        steps = max(32, 65536 // num_envs)
        for label, policy, params, bar in (
            ("64 x 64 network", network.policy("jax"), network.init(), 0.95),
            ("random actions", "random", None, 1.5),
        ):
            native, array = (
                make("CartPole-v1", rung, num_envs, steps, policy=policy)
                for rung in ("native-xla", "xla-fused")
            )
            bench.compare(
                f"N={num_envs}, {label}",
                collecting(native, params),
                collecting(array, params),
                bar,
            )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
