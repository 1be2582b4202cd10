# SPDX-License-Identifier: Apache-2.0
"""SAC updates, 256 x 256, twin critics: ours against the processor's products and against peers.

Ours is what training runs: batches drawn from the ring, both updates, several of them a dispatch.
The share of the peak counts the multiplications that the mathematics asks for, and nothing else;
the peak is XLA's own float32 product of large matrices, timed in the same run.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from harness import Benchmark, repeat
from peer import Peer
from timing import Rate

from headrace.envs.spec import EnvEntry, EnvSpec
from headrace.learn.algorithm import Transitions
from headrace.learn.replay import Layout
from headrace.learn.sac import Config, Sac

OBSERVATIONS, ACTIONS, WIDTH, ROWS = 17, 6, 256, 1 << 16
PEAK = 2048


def spec() -> EnvSpec:
    """HalfCheetah's spaces."""
    box = gymnasium.spaces.Box
    return EnvSpec(
        EnvEntry("Spaces-v0"),
        box(-np.inf, np.inf, (OBSERVATIONS,), np.float32),
        box(-1, 1, (ACTIONS,), np.float32),
        None,
    )


def operations(batch: int) -> float:
    """Of an update: two for every multiplication that a gradient or a value needs."""
    between = WIDTH * WIDTH
    actor = OBSERVATIONS * WIDTH + between + WIDTH * 2 * ACTIONS
    critic = (OBSERVATIONS + ACTIONS) * WIDTH + between + WIDTH
    of_inputs = between + WIDTH  # one critic's, back to its first layer
    actor_back = actor + between + WIDTH * 2 * ACTIONS
    targets = actor + 2 * critic
    critics = 2 * (critic + critic + of_inputs)
    acting = actor + 2 * (critic + of_inputs + ACTIONS * WIDTH) + actor_back
    return 2.0 * batch * (targets + critics + acting)


def updates(batch: int, precision: Any) -> Rate:
    """Updates per second."""
    sac = Sac(spec(), Config(hidden=(WIDTH, WIDTH), batch_size=batch, precision=precision))
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal((ROWS, *shape), np.float32)

    kept = Transitions(
        obs=normal(OBSERVATIONS),
        action=np.tanh(normal(ACTIONS)),
        reward=normal(),
        discount=np.full(ROWS, 0.99, np.float32),
        next_obs=normal(OBSERVATIONS),
    )
    layout = Layout(jax.tree.map(lambda rows: rows[0], kept))
    count = max(1, 8192 // batch)

    def several(carry: Any) -> Any:
        def one(_: Any, carry: Any) -> Any:
            learner, ring = carry
            ring, batch_of = layout.sample(ring, batch)
            return sac.update(learner, batch_of)[0], ring

        return jax.lax.fori_loop(0, count, one, carry)

    program = jax.jit(several, donate_argnums=0)
    carry = (sac.init(0), layout.insert(layout.empty(ROWS, 0), kept))
    carry = jax.device_put(carry)

    def step() -> None:
        nonlocal carry
        carry = jax.block_until_ready(program(carry))

    step()
    return repeat(step, count)


def peak() -> Rate:
    """XLA's product of large matrices, operations per second."""
    matrix = jnp.ones((PEAK, PEAK), jnp.float32)
    program = jax.jit(lambda a: a @ a)
    return repeat(lambda: program(matrix).block_until_ready(), 2.0 * PEAK**3)


def scaled(rate: Rate, factor: float) -> Rate:
    """The same in other units."""
    return lambda seconds: factor * rate(seconds)


def rows(bench: Benchmark, large: Rate, batch: int, bars: dict[str, float]) -> None:
    """One batch size, in both precisions, against everything."""
    ours = {precision: updates(batch, precision) for precision in ("f32", "bf16")}
    for precision, rate in ours.items():
        share = scaled(rate, operations(batch))
        bench.compare(f"{batch} {precision}, share of peak", share, large, bars["peak"])

    def against(name: str, *more: str) -> None:
        arguments = ("--framework", name, "--batch-size", str(batch), *more)
        with Peer(name, "sac_update.py", *arguments) as peer:
            for precision, rate in ours.items():
                title = " ".join((f"{batch} {precision}, {name}", *more))
                bench.compare(title, rate, peer.rate, bars[name])

    bench.with_peer(lambda: against("sbx"))
    for threads in ("1", "2"):
        bench.with_peer(lambda threads=threads: against("sb3", "--threads", threads))


def main() -> int:
    """By batch size."""
    bench = Benchmark("sac_update", __doc__)
    large = peak()
    rows(bench, large, 256, {"peak": 0.6, "sb3": 2.5, "sbx": 1.6})
    rows(bench, large, 8192, {"peak": 0.6, "sb3": 1.35, "sbx": 1.35})
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
