# SPDX-License-Identifier: Apache-2.0
"""An environment of your own, written once, on every rung that arrays have.

python examples/own_environment.py

It is Gymnasium's MountainCar-v0, as pure functions over NumPy, torch or JAX. Registered together
with Gymnasium's class it gets a ladder from a Python loop to a fused XLA program.
"""

from typing import Any, NamedTuple

import gymnasium
import numpy as np

import headrace
from headrace.envs.array.base import ArrayEnv

FORCE, GRAVITY, TOP_SPEED = 0.001, 0.0025, 0.07
LEFT, RIGHT, GOAL = -1.2, 0.6, 0.5


class CarState(NamedTuple):
    """One float32 for each environment."""

    position: Any
    velocity: Any


class MountainCar(ArrayEnv[CarState]):
    """Swing out of the valley."""

    observation_space = gymnasium.spaces.Box(
        np.array([LEFT, -TOP_SPEED], np.float32), np.array([RIGHT, TOP_SPEED], np.float32)
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, ns: Any, draws: Any) -> CarState:
        """At rest, in the valley."""
        position = draws.uniform(-0.6, -0.4)
        return CarState(position, 0 * position)

    def step(self, ns: Any, state: CarState, action: Any) -> tuple[CarState, Any, Any]:
        """Gymnasium's rules; -1 a step."""
        xp = ns.xp
        push = FORCE * (ns.to_float(action) - 1)
        velocity = state.velocity + push - GRAVITY * xp.cos(3 * state.position)
        velocity = xp.clip(velocity, -TOP_SPEED, TOP_SPEED)
        position = xp.clip(state.position + velocity, LEFT, RIGHT)
        velocity = xp.where((position == np.float32(LEFT)) & (velocity < 0), 0 * velocity, velocity)
        return CarState(position, velocity), -xp.ones_like(position), position >= GOAL

    def observe(self, ns: Any, state: CarState) -> tuple[Any, ...]:
        """The state itself."""
        return tuple(state)


headrace.register(
    "my/MountainCar-v0",
    gym="gymnasium.envs.classic_control.mountain_car:MountainCarEnv",
    array=MountainCar,
    max_episode_steps=200,
)


def main() -> None:
    """Climb the ladder with it."""
    result = headrace.ladder(
        "my/MountainCar-v0",
        num_envs=1024,
        steps=32,
        rungs=["python", "numpy", "xla", "xla-fused"],
        seconds=0.5,
        update_seconds=0.05,
    )
    print(result.text())


if __name__ == "__main__":
    main()
