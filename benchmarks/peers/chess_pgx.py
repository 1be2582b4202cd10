# SPDX-License-Identifier: Apache-2.0
"""Worker: Pgx's chess, as a batch of games in one compiled `lax.scan`.

A step does all that ours do: the 119 planes (as bytes) and the mask (as bits), a random legal move,
auto-reset, and the whole transition kept.
"""

from __future__ import annotations

import argparse

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import pgx  # pyright: ignore[reportMissingImports]
from pgx.experimental import auto_reset  # pyright: ignore[reportMissingImports]
from protocol import Block, serve


def scanned(num_envs: int, steps: int) -> Block:
    """Batches of `num_envs` games by `steps` plies."""
    env = pgx.make("chess")
    step = auto_reset(env.step, env.init)

    def one_step(carry: tuple, _: None) -> tuple:
        state, key = carry
        key, chance, restart = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(chance, logits, axis=-1)
        after = jax.vmap(step)(state, action, jax.random.split(restart, num_envs))
        mover = state.current_player
        kept = (
            state.observation.astype(jnp.uint8),
            jnp.packbits(state.legal_action_mask, axis=-1, bitorder="little"),
            mover.astype(jnp.uint8),
            action.astype(jnp.uint16),
            jnp.take_along_axis(after.rewards, mover[:, None], axis=1)[:, 0],
            after.terminated,
        )
        return (after, key), kept

    @jax.jit
    def batch(carry: tuple) -> tuple:
        return jax.lax.scan(one_step, carry, length=steps)

    keys = jax.random.split(jax.random.PRNGKey(0), num_envs)
    carry = jax.jit(jax.vmap(env.init))(keys), jax.random.PRNGKey(1)

    def block() -> int:
        nonlocal carry
        carry, kept = batch(carry)
        jax.block_until_ready(kept)
        return num_envs * steps

    block()
    block()  # it compiles twice
    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()
    serve(pgx.__version__, scanned(arguments.num_envs, arguments.steps))


if __name__ == "__main__":
    main()
