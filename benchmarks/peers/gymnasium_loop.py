# SPDX-License-Identifier: Apache-2.0
"""Worker: Gymnasium, as a bare Python loop over one environment or as one of its vector forms.

The bare loop is as fast as such a loop goes: no checker, no order enforcement, only the time limit
on top of the environment, with actions drawn beforehand. `--vector native` is the vectorised NumPy
environment that Gymnasium has for some (CartPole). The vector forms reset an environment that has
ended in the step after; that step is counted as well, in their favour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from protocol import Block, pool_length, serve


def make_env(env_id: str) -> gymnasium.Env:
    """The environment under its time limit, and no other wrapper."""
    env = gymnasium.make(env_id, disable_env_checker=True)
    assert env.spec is not None
    assert env.spec.max_episode_steps is not None, f"{env_id} has no time limit"
    return TimeLimit(env.unwrapped, env.spec.max_episode_steps)


def draw_actions(space: gymnasium.Space, shape: tuple[int, ...]) -> np.ndarray:
    """Random actions `[*shape, ...]` of one environment's action space."""
    rng = np.random.default_rng(0)
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(space.n, size=shape)
    assert isinstance(space, gymnasium.spaces.Box)
    return rng.uniform(space.low, space.high, (*shape, *space.shape)).astype(space.dtype)


def one_env(env_id: str) -> Block:
    """The bare loop."""
    env = make_env(env_id)
    actions = draw_actions(env.action_space, (1024,))
    # Python integers for discrete actions, rows for others.
    pool = actions.tolist() if actions.ndim == 1 else list(actions)
    step, reset = env.step, env.reset
    reset(seed=1)

    def block() -> int:
        for action in pool:
            _obs, _reward, terminated, truncated, _info = step(action)
            if terminated or truncated:
                reset()
        return len(pool)

    return block


def make_vector(env_id: str, form: str, num_envs: int) -> VectorEnv:
    """Gymnasium's own vector of `num_envs`, in the form named on the command line."""
    if form == "native":
        return gymnasium.make_vec(env_id, num_envs, vectorization_mode="vector_entry_point")
    makers: list[Callable[[], gymnasium.Env]] = [lambda: make_env(env_id)] * num_envs
    # Neither copies its observations: the fastest they can be asked for.
    return (SyncVectorEnv if form == "sync" else AsyncVectorEnv)(makers, copy=False)


def vector_envs(env_id: str, form: str, num_envs: int) -> Block:
    """A vector environment's `step`."""
    envs = make_vector(env_id, form, num_envs)
    slow = form != "native"  # a block must not take seconds
    length = 16 if slow else pool_length(num_envs)
    actions = list(draw_actions(envs.single_action_space, (length, num_envs)))
    step = envs.step
    envs.reset(seed=1)

    def block() -> int:
        for action in actions:
            _obs, _reward, _terminated, _truncated, _info = step(action)
        return len(actions) * num_envs

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--vector", choices=["sync", "async", "native"], help="default: one loop")
    parser.add_argument("--num-envs", type=int, default=16)
    arguments = parser.parse_args()
    if arguments.vector:
        block = vector_envs(arguments.env, arguments.vector, arguments.num_envs)
    else:
        block = one_env(arguments.env)
    serve(gymnasium.__version__, block)


if __name__ == "__main__":
    main()
