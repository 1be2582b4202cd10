# SPDX-License-Identifier: Apache-2.0
"""`step(actions)` through Gymnasium's vector API, against EnvPool, PufferLib and SyncVectorEnv.

All step with actions drawn beforehand and reset themselves. EnvPool runs asynchronously, at the
sizes where it is fastest; PufferLib is its C CartPole at the size where it is fastest, found first.
"""

import itertools
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
from harness import Benchmark, collecting, repeat
from peer import Peer
from timing import Rate

import headrace

ENVPOOL_SIZES = ((1024, 512), (2048, 1024), (4096, 2048))
PUFFERLIB_SIZES = (1024, 4096, 16384)


def stepping(env: str, num_envs: int, **arguments: Any) -> Rate:
    """The rate of a vector environment of ours."""
    envs = headrace.make_vec(env, num_envs, **arguments)
    return repeat(stepper(envs), num_envs)


def stepper(envs: gymnasium.vector.VectorEnv) -> Callable[[], object]:
    """A callable that steps with the next of 64 arrays of actions."""
    envs.reset(seed=0)
    envs.action_space.seed(0)
    pool = itertools.cycle([envs.action_space.sample() for _ in range(64)])
    step = envs.step
    return lambda: step(next(pool))


def fastest(peers: list[Peer], seconds: float) -> Peer:
    """The peer with the highest rate; the others are closed."""
    rates = {peer.rate(seconds): peer for peer in peers}
    best = rates.pop(max(rates))
    for other in rates.values():
        other.close()
    return best


def main() -> int:
    """Every comparison."""
    bench = Benchmark("vector_env", __doc__)
    seconds = bench.arguments.seconds

    def envpool(env: str) -> None:
        with fastest(
            [
                Peer(
                    "envpool",
                    "envpool_step.py",
                    "--env",
                    env,
                    "--num-envs",
                    str(size),
                    "--batch-size",
                    str(batch),
                    "--threads",
                    str(threads),
                )
                for size, batch in ENVPOOL_SIZES
                for threads in (1, 2)
            ],
            seconds,
        ) as peer:
            for copy in (True, False):
                label = f"{env} N=1024 {'copies' if copy else 'views'} / EnvPool"
                bench.compare(label, stepping(env, 1024, copy=copy), peer.rate, 100)

    def pufferlib() -> None:
        with fastest(
            [
                Peer("pufferlib", "pufferlib_step.py", "--num-envs", str(size))
                for size in PUFFERLIB_SIZES
            ],
            seconds,
        ) as peer:
            for num_envs, bar in ((1024, 5), (4096, None), (16384, None)):
                # PufferLib hands out views of its buffers.
                ours = stepping("CartPole-v1", num_envs, copy=False)
                bench.compare(f"CartPole-v1 N={num_envs} views / PufferLib", ours, peer.rate, bar)

    bench.with_peer(lambda: envpool("CartPole-v1"))
    bench.with_peer(lambda: envpool("Pendulum-v1"))
    bench.with_peer(pufferlib)

    for env in ("CartPole-v1", "Pendulum-v1"):
        sync = gymnasium.make_vec(env, 1, vectorization_mode="sync")
        bench.compare(
            f"{env} N=1 copies / SyncVectorEnv", stepping(env, 1), repeat(stepper(sync), 1), 10
        )

    one = headrace.make_collector("CartPole-v1", rung="native", num_envs=1, steps=1024)
    microseconds = min(1e6 / collecting(one)(seconds) for _ in range(bench.arguments.rounds))
    bench.check("CartPole-v1 N=1, a native call", microseconds, 1.0, "us")
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
