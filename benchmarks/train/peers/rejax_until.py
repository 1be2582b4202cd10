# SPDX-License-Identifier: Apache-2.0
"""rejax, with the settings of its repository (configs/gymnax) for the task.

Its `train` is one program without an early end. So its iterations and its own evaluation, of 20
episodes, are compiled as one program from one evaluation to the next: it compiles once, as it does.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from race import EPISODES, Race

PPO = {
    "agent_kwargs": {"activation": "tanh"},
    "num_envs": 5,
    "num_steps": 100,
    "num_epochs": 5,
    "num_minibatches": 5,
    "learning_rate": 0.00075,
    "max_grad_norm": 0.5,
    "total_timesteps": 100_000,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_eps": 0.2,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
}
SAC = {
    "agent_kwargs": {"activation": "swish"},
    "num_envs": 1,
    "buffer_size": 10_000,
    "fill_buffer": 256,
    "batch_size": 256,
    "learning_rate": 0.01,
    "num_epochs": 1,
    "total_timesteps": 10_000,
    "gamma": 0.99,
    "polyak": 0.98,
    "target_entropy_ratio": None,
    "normalize_observations": True,
}
EVERY = {"ppo-cartpole": 5000, "sac-pendulum": 500}


class RejaxRace(Race):
    """With the choice of networks."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """SAC's networks."""
        parser.add_argument("--hidden", type=int, nargs="*", default=[64, 64], help="SAC's")


def main() -> None:
    """Read the arguments, and race."""
    race = RejaxRace("rejax", tuple(EVERY), __doc__)
    import jax
    import rejax  # pyright: ignore[reportMissingImports]
    from jax import numpy as jnp
    from rejax.evaluate import evaluate  # pyright: ignore[reportMissingImports]

    every = race.arguments.every or EVERY[race.arguments.task]
    if race.arguments.task == "ppo-cartpole":
        algo: Any = rejax.PPO.create(env=race.task.env, **PPO)
        steps = PPO["num_envs"] * PPO["num_steps"]
    else:
        layers = tuple(race.arguments.hidden)
        algo = rejax.SAC.create(env=race.task.env, hidden_layer_sizes=layers, **SAC)
        steps = SAC["num_envs"]
    iterations = -(-every // steps)

    def learn(state: Any, iterations: int) -> Any:
        return jax.lax.fori_loop(0, iterations, lambda _, s: algo.train_iteration(s), state)

    @partial(jax.jit, donate_argnums=0)
    def advance(state: Any) -> tuple[Any, Any]:
        state = learn(state, iterations)
        limit = algo.env_params.max_steps_in_episode
        act = algo.make_act(state)
        _, returns = evaluate(act, state.rng, algo.env, algo.env_params, EPISODES, limit)
        return state, jnp.mean(returns)

    state = jax.jit(algo.init_state)(jax.random.key(race.seed))
    compiled = advance.lower(state).compile()
    race.begin()
    env_steps, over = 0, False
    while not over:
        state, score = compiled(state)
        env_steps += iterations * steps
        over = race.decided(env_steps, float(score))

    on = jax.jit(partial(learn, iterations=10 * iterations))

    def learn_on() -> int:
        nonlocal state
        state = jax.block_until_ready(on(state))
        return 10 * iterations * steps

    race.learn_on(learn_on)
    race.report()


if __name__ == "__main__":
    main()
