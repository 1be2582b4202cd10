# SPDX-License-Identifier: Apache-2.0
"""Batches for a learner: a JAX policy and a C++ environment inside one XLA program.

python examples/batches.py [--num-envs N] [--batches B]

The policy is a pure function; its outputs (here log-probabilities and values) come with the batch.
"""

import argparse
import time

import jax
import numpy as np

import headrace

DISCOUNT, LAMBDA = 0.99, 0.95


def advantages(batch: headrace.Batch) -> np.ndarray:
    """Generalised advantage estimates [T, N], without the bootstrap at time limits."""
    values, rewards = np.asarray(batch.extras["value"]), np.asarray(batch.reward)
    going_on = 1.0 - np.asarray(batch.ended)
    out, later, next_value = np.zeros_like(rewards), 0.0, values[-1]
    for t in reversed(range(batch.steps)):
        error = rewards[t] + DISCOUNT * going_on[t] * next_value - values[t]
        out[t] = later = error + DISCOUNT * LAMBDA * going_on[t] * later
        next_value = values[t]
    return out


def main() -> None:
    """Collect, and look at what came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--batches", type=int, default=20)
    settings = parser.parse_args()

    network = headrace.MlpPolicy(headrace.spec("CartPole-v1"), hidden=(64, 64))
    params = jax.device_put(network.init(seed=0))
    with headrace.make_collector(
        "CartPole-v1",
        rung="native-xla",
        num_envs=settings.num_envs,
        steps=32,
        policy=network.policy("jax"),
    ) as source:
        batch = source.collect(params)  # compiles
        start = time.perf_counter()
        for _ in range(settings.batches):
            batch = source.collect(params)
        jax.block_until_ready(batch.reward)
        seconds = time.perf_counter() - start
        returns, _ = batch.episodes()
        print(f"obs {batch.obs.shape}, action {batch.action.dtype}, extras {sorted(batch.extras)}")
        print(f"{len(returns)} episodes ended in the last batch, mean return {returns.mean():.1f}")
        print(f"advantages {advantages(batch).shape}")
        steps = settings.batches * batch.steps * batch.num_envs
        print(f"{steps / seconds:,.0f} steps/s, a 64 x 64 network included")


if __name__ == "__main__":
    main()
