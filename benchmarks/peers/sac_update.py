# SPDX-License-Identifier: Apache-2.0
"""Worker: SAC updates of Stable-Baselines3 or SBX, from a full replay buffer.

What is timed is `train()`: batches drawn, losses, both networks and the temperature, targets. The
environment has HalfCheetah's spaces and is never stepped; the buffer holds random numbers.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
from protocol import serve

OBSERVATIONS, ACTIONS, ROWS = 17, 6, 20_000


class Spaces(gymnasium.Env):
    """HalfCheetah's, without its physics."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATIONS,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (ACTIONS,), np.float32)

    def reset(self, **_: Any) -> tuple[np.ndarray, dict]:
        """Nowhere."""
        return np.zeros(OBSERVATIONS), {}


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=["sb3", "sbx"], required=True)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1, help="torch's; 0: as many as it takes")
    arguments = parser.parse_args()
    if arguments.framework == "sb3":
        import torch
        from stable_baselines3 import SAC  # pyright: ignore[reportMissingImports]

        if arguments.threads:
            torch.set_num_threads(arguments.threads)
    else:
        from sbx import SAC  # pyright: ignore[reportMissingImports]
    size = arguments.batch_size
    model = SAC(
        "MlpPolicy",
        Spaces(),
        batch_size=size,
        buffer_size=ROWS,
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
    )
    model._setup_learn(1)
    buffer = model.replay_buffer
    assert buffer is not None
    generator = np.random.default_rng(0)
    for rows in (buffer.observations, buffer.next_observations, buffer.rewards):
        rows[:] = generator.standard_normal(rows.shape)
    buffer.actions[:] = generator.uniform(-1, 1, buffer.actions.shape)
    buffer.full = True
    updates = max(1, 2048 // size)

    def block() -> int:
        model.train(gradient_steps=updates, batch_size=size)
        return updates

    serve(version("stable-baselines3" if arguments.framework == "sb3" else "sbx-rl"), block)


if __name__ == "__main__":
    main()
