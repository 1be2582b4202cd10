# SPDX-License-Identifier: Apache-2.0
"""Pendulum-v1: swing up and hold a pendulum with a limited torque, by Gymnasium's rules."""

from typing import NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.base import ArrayEnv
from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.philox import ResetDraws

GRAVITY, MASS, LENGTH, DT = 10.0, 1.0, 1.0, 0.05
MAX_SPEED, MAX_TORQUE = 8.0, 2.0
PI = float(np.pi)


class PendulumState(NamedTuple):
    """The angle from upright, not wrapped, and its rate."""

    theta: Array
    theta_dot: Array


class Pendulum(ArrayEnv[PendulumState]):
    """Torque on a hanging pendulum; the reward is least where it stands still, upright."""

    observation_space = gymnasium.spaces.Box(
        np.array([-1, -1, -MAX_SPEED], np.float32), np.array([1, 1, MAX_SPEED], np.float32)
    )
    action_space = gymnasium.spaces.Box(-MAX_TORQUE, MAX_TORQUE, (1,), np.float32)

    def reset(self, ns: Namespace, draws: ResetDraws) -> PendulumState:
        """Anywhere, slowly."""
        return PendulumState(draws.uniform(-PI, PI), draws.uniform(-1.0, 1.0))

    def step(
        self, ns: Namespace, state: PendulumState, action: tuple[Array, ...]
    ) -> tuple[PendulumState, Array, Array]:
        """Semi-implicit Euler; the cost is that of the state before."""
        xp = ns.xp
        theta, theta_dot = state
        torque = xp.clip(action[0], -MAX_TORQUE, MAX_TORQUE)
        angle = theta - 2 * PI * xp.floor((theta + PI) / (2 * PI))  # in [-pi, pi)
        cost = angle * angle + 0.1 * theta_dot * theta_dot + 0.001 * torque * torque

        gravity = 3 * GRAVITY / (2 * LENGTH) * xp.sin(theta)
        theta_acc = gravity + 3.0 / (MASS * LENGTH * LENGTH) * torque
        theta_dot = xp.clip(theta_dot + theta_acc * DT, -MAX_SPEED, MAX_SPEED)
        theta = theta + theta_dot * DT
        return PendulumState(theta, theta_dot), -cost, xp.zeros_like(theta, dtype=xp.bool)

    def observe(self, ns: Namespace, state: PendulumState) -> tuple[Array, ...]:
        """The tip's position and the rate."""
        return ns.xp.cos(state.theta), ns.xp.sin(state.theta), state.theta_dot
