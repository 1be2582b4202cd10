# SPDX-License-Identifier: Apache-2.0
"""Worker: EnvPool's chess, one synchronous step of all games at a time, by random legal moves.

It gives float32 planes for both players, and masks as bools; each step is copied into a batch as
bytes and bits, those of the player to move. EnvPool resets a game that has ended in the step after;
that step is counted as well, in its favour.
"""

from __future__ import annotations

import argparse
import random

import envpool  # pyright: ignore[reportMissingImports]
import numpy as np
from protocol import Block, serve

STEPS = 4


def synchronous(num_envs: int, threads: int) -> Block:
    """All games at each call."""
    env = envpool.make(
        "Chess-v1", env_type="gymnasium", num_envs=num_envs, num_threads=threads, seed=1
    )
    uniform = random.Random(0).random

    def one_of(actions: list[int]) -> int:
        # None is legal where a game has ended, and waits to be reset.
        return actions[int(uniform() * len(actions))] if actions else 0

    rows = np.arange(num_envs)
    obs = np.zeros((STEPS, num_envs, 8, 8, 119), np.uint8)
    mask = np.zeros((STEPS, num_envs, 584), np.uint8)
    to_play = np.zeros((STEPS, num_envs), np.uint8)
    action = np.zeros((STEPS, num_envs), np.uint16)
    rewards = np.zeros((STEPS, num_envs), np.float32)
    ends = np.zeros((2, STEPS, num_envs), np.bool_)
    seen, info = env.reset()

    def block() -> int:
        nonlocal seen, info
        for t in range(STEPS):
            legal, mover = info["legal_action_mask"], info["current_player"]
            obs[t] = seen[2 * rows + mover]
            mask[t] = np.packbits(legal, axis=-1, bitorder="little")
            to_play[t] = mover
            chosen = [one_of(row.nonzero()[0].tolist()) for row in legal]
            action[t] = chosen
            seen, reward, ends[0, t], ends[1, t], info = env.step(np.array(chosen, np.int32))
            rewards[t] = np.reshape(reward, (num_envs, -1))[rows, mover if reward.ndim > 1 else 0]
        return STEPS * num_envs

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    serve(envpool.__version__, synchronous(arguments.num_envs, arguments.threads))


if __name__ == "__main__":
    main()
