# SPDX-License-Identifier: Apache-2.0
"""Worker: PufferLib's C CartPole, stepped through the vector environment it ships with.

One process by default: `Cartpole(num_envs)` is a vector in itself, and its `step` is one call into
C. `--workers` spreads it over PufferLib's own multiprocessing instead. The environment resets
itself within the step that ends an episode, and marks the time limit nowhere. It collects its
statistics only every `--report-interval` steps; its default, 1, would cost it a pass over all
environments a step.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version

import numpy as np
import pufferlib.vector  # pyright: ignore[reportMissingImports]
from protocol import Block, pool_length, serve
from pufferlib.ocean.cartpole.cartpole import (  # pyright: ignore[reportMissingImports]
    Cartpole,
)


def draw_actions(num_envs: int, dtype: type[np.generic]) -> list[np.ndarray]:
    """A pool of random action batches `[num_envs]`."""
    rng = np.random.default_rng(0)
    return list(rng.integers(2, size=(pool_length(num_envs), num_envs)).astype(dtype))


def one_process(num_envs: int, report_interval: int) -> Block:
    """The C environments in this process, on one thread."""
    env = Cartpole(num_envs=num_envs, report_interval=report_interval)
    actions = draw_actions(num_envs, np.float32)  # what the C code reads: nothing to convert
    step = env.step
    env.reset(seed=1)

    def block() -> int:
        for action in actions:
            _obs, _reward, _terminated, _truncated, _info = step(action)
        return len(actions) * num_envs

    return block


def many_processes(num_envs: int, report_interval: int, workers: int) -> Block:
    """Twice as many environments as a batch, so that workers step one half during the other."""
    num_vectors = 2 * workers
    env = pufferlib.vector.make(
        Cartpole,
        backend=pufferlib.vector.Multiprocessing,
        num_envs=num_vectors,
        num_workers=num_vectors,
        batch_size=workers,
        overwork=True,  # more workers than cores: only half of them have work at a time
        env_kwargs={"num_envs": num_envs // num_vectors, "report_interval": report_interval},
    )
    rows = num_envs // num_vectors * workers
    actions = draw_actions(rows, np.int32)
    env.async_reset(seed=1)

    def block() -> int:
        for action in actions:
            env.recv()
            env.send(action)
        return len(actions) * rows

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=16384)
    parser.add_argument("--report-interval", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=0, help="0: one process")
    arguments = parser.parse_args()
    if arguments.workers:
        block = many_processes(arguments.num_envs, arguments.report_interval, arguments.workers)
    else:
        block = one_process(arguments.num_envs, arguments.report_interval)
    serve(version("pufferlib"), block)


if __name__ == "__main__":
    main()
