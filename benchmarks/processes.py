# SPDX-License-Identifier: Apache-2.0
"""Two worker processes against one Python loop, and against Gymnasium's AsyncVectorEnv."""

import sys

from harness import Benchmark, collecting, make
from peer import Peer


def main() -> int:
    """Both tasks."""
    bench = Benchmark("processes", __doc__)
    for env in ("CartPole-v1", "Pendulum-v1"):
        with (
            make(env, "processes", 16, 512, workers=2) as workers,
            make(env, "python", 16, 512) as plain,
        ):
            bench.compare(f"{env} 2 workers / python", collecting(workers), collecting(plain), 1.7)

    def asynchronous(env: str, num_envs: int) -> None:
        arguments = ("--env", env, "--vector", "async", "--num-envs", str(num_envs))
        with (
            Peer("gymnasium", "gymnasium_loop.py", *arguments) as peer,
            make(env, "processes", num_envs, 512) as workers,
        ):
            label = f"{env} N={num_envs} / AsyncVectorEnv"
            bench.compare(label, collecting(workers), peer.rate, 1.0)

    for env in ("CartPole-v1", "Pendulum-v1"):
        for num_envs in (2, 16):
            bench.with_peer(lambda env=env, n=num_envs: asynchronous(env, n))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
