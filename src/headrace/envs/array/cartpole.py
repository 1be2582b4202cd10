# SPDX-License-Identifier: Apache-2.0
"""CartPole-v1: the pole-balancing task of Barto, Sutton and Anderson, by Gymnasium's rules."""

from typing import NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.base import ArrayEnv
from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.philox import ResetDraws

GRAVITY, MASS_POLE, TOTAL_MASS, HALF_LENGTH = 9.8, 0.1, 1.1, 0.5
POLE_MOMENT = MASS_POLE * HALF_LENGTH
FORCE, TAU = 10.0, 0.02
X_LIMIT, THETA_LIMIT = 2.4, 12 * 2 * np.pi / 360


class CartPoleState(NamedTuple):
    """Position and angle, and their rates."""

    x: Array
    x_dot: Array
    theta: Array
    theta_dot: Array


class CartPole(ArrayEnv[CartPoleState]):
    """Push a cart left or right so that the pole on it stays up."""

    observation_space = gymnasium.spaces.Box(
        -np.array([2 * X_LIMIT, np.inf, 2 * THETA_LIMIT, np.inf], np.float32),
        np.array([2 * X_LIMIT, np.inf, 2 * THETA_LIMIT, np.inf], np.float32),
    )
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, ns: Namespace, draws: ResetDraws) -> CartPoleState:
        """Near the middle, near upright, nearly at rest."""
        return CartPoleState(*(draws.uniform(-0.05, 0.05) for _ in range(4)))

    def step(
        self, ns: Namespace, state: CartPoleState, action: Array
    ) -> tuple[CartPoleState, Array, Array]:
        """Explicit Euler; 1 for every step, the last one too."""
        x, x_dot, theta, theta_dot = state
        force = FORCE * (2 * ns.to_float(action) - 1)
        cos, sin = ns.xp.cos(theta), ns.xp.sin(theta)
        push = (force + POLE_MOMENT * theta_dot * theta_dot * sin) / TOTAL_MASS
        theta_acc = (GRAVITY * sin - cos * push) / (
            HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * cos * cos / TOTAL_MASS)
        )
        x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS
        after = CartPoleState(
            x + TAU * x_dot,
            x_dot + TAU * x_acc,
            theta + TAU * theta_dot,
            theta_dot + TAU * theta_acc,
        )
        fallen = (ns.xp.abs(after.x) > X_LIMIT) | (ns.xp.abs(after.theta) > THETA_LIMIT)
        return after, ns.xp.ones_like(x), fallen

    def observe(self, ns: Namespace, state: CartPoleState) -> tuple[Array, ...]:
        """The state itself."""
        return tuple(state)
