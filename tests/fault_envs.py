# SPDX-License-Identifier: Apache-2.0
"""Environments that go wrong."""

import os
import time
from pathlib import Path

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Box


class Quiet(Env):
    """Goes well; a step costs about nothing."""

    observation_space = Box(-1, 1, (3,), np.float32)
    action_space = Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self.left = 50

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 50
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(3, self.left / 50, np.float32), float(action[0]), self.left == 0, False, {}


class _Once(Quiet):
    """Goes wrong in the first process that gets as far, whose mark is a file that is then there."""

    def __init__(self, mark):
        super().__init__()
        self.mark, self.steps = Path(mark), 0

    def step(self, action):
        self.steps += 1
        if self.steps == 300 and not self.mark.exists():
            self.mark.write_text(str(os.getpid()))
            self.go_wrong()
        return super().step(action)

    def go_wrong(self):
        raise ArithmeticError("the environment's own mistake")


class RaisesOnce(_Once):
    pass


class HangsOnce(_Once):
    def go_wrong(self):
        time.sleep(3600)


class AlwaysRaises(Quiet):
    def step(self, action):
        raise ArithmeticError("never works")


class GivesNan(Quiet):
    def step(self, action):
        obs, _, terminated, truncated, info = super().step(action)
        return obs, float("nan"), terminated, truncated, info
