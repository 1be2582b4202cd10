# SPDX-License-Identifier: Apache-2.0
"""Worker: EnvPool's environment steps, synchronous (`step`) or asynchronous (`send` and `recv`).

EnvPool resets an environment that has ended in the step after; that step is counted as well, in
its favour. Asynchronous is its fast form: `--batch-size` is less than `--num-envs`.
"""

from __future__ import annotations

import argparse

import envpool  # pyright: ignore[reportMissingImports]
import numpy as np
from protocol import Block, pool_length, serve


def draw_actions(env: envpool.EnvPool, rows: int) -> list[np.ndarray]:
    """A pool of random action batches `[rows, ...]`, in the type that EnvPool takes uncopied."""
    rng = np.random.default_rng(0)
    space = env.action_space
    dtype = env.spec.action_array_spec["action"].dtype
    shape = (pool_length(rows), rows, *space.shape)
    if space.shape:  # continuous
        return list(rng.uniform(space.low, space.high, shape).astype(dtype))
    return list(rng.integers(space.n, size=shape).astype(dtype))


def synchronous(env: envpool.EnvPool, num_envs: int) -> Block:
    """All environments at each call."""
    actions = draw_actions(env, num_envs)
    step = env.step
    env.reset()

    def block() -> int:
        for action in actions:
            _obs, _reward, _terminated, _truncated, _info = step(action)
        return len(actions) * num_envs

    return block


def asynchronous(env: envpool.EnvPool, batch_size: int) -> Block:
    """At each call the `batch_size` environments that are ready first."""
    actions = draw_actions(env, batch_size)
    send, recv = env.send, env.recv
    env.async_reset()

    def block() -> int:
        for action in actions:
            _obs, _reward, _terminated, _truncated, info = recv()
            send(action, info["env_id"])
        return len(actions) * batch_size

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--num-envs", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, help="less than --num-envs: asynchronous")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    batch_size = arguments.batch_size or arguments.num_envs
    env = envpool.make(
        arguments.env,
        env_type="gymnasium",
        num_envs=arguments.num_envs,
        batch_size=batch_size,
        num_threads=arguments.threads,
        seed=1,
    )
    is_async = batch_size < arguments.num_envs
    block = asynchronous(env, batch_size) if is_async else synchronous(env, arguments.num_envs)
    serve(envpool.__version__, block)


if __name__ == "__main__":
    main()
