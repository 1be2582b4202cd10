# SPDX-License-Identifier: Apache-2.0
"""Random games of Pgx's chess, written down: run by `.peers/gymnax/bin/python`.

pgx_games.py OUT.npz GAMES STEPS SEED
"""

import sys
from typing import Any

import jax
import numpy as np
import pgx  # pyright: ignore[reportMissingImports] - in the peer's environment


def main() -> None:
    """All games side by side; those that end stay as they are."""
    out, games, steps, seed = sys.argv[1], *map(int, sys.argv[2:5])
    env = pgx.make("chess")
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(seed), games))
    step = jax.jit(jax.vmap(env.step))
    generator = np.random.default_rng(seed)
    seen: dict[str, list[np.ndarray]] = {
        name: [] for name in ("obs", "mask", "terminated", "action", "reward")
    }
    for _ in range(steps):
        mask = np.asarray(state.legal_action_mask)
        action = np.argmax(mask * (1 + generator.random(mask.shape)), axis=1).astype(np.int32)
        mover = np.asarray(state.current_player)
        seen["obs"].append(np.asarray(state.observation))
        seen["mask"].append(np.packbits(mask, axis=1, bitorder="little"))
        seen["terminated"].append(np.asarray(state.terminated))
        seen["action"].append(action)
        state = step(state, action)
        rewards = np.asarray(state.rewards)
        seen["reward"].append(rewards[np.arange(games), mover])
    seen["terminated"].append(np.asarray(state.terminated))
    arrays: dict[str, Any] = {name: np.stack(rows) for name, rows in seen.items()}
    np.savez(out, **arrays)


if __name__ == "__main__":
    main()
