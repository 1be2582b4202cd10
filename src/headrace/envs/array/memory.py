# SPDX-License-Identifier: Apache-2.0
"""Memory-v0: a synthetic simulator whose state is as large as one likes, all of it used each step.

The rules stand in native/envs/memory.hpp. Integers make the sum exact in any order, so every
definition agrees to the last bit.
"""

from typing import NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.base import ArrayEnv, sum_events
from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.philox import ResetDraws
from headrace.errors import HeadraceError


class MemoryState(NamedTuple):
    """The words, on a trailing event axis, and their sum."""

    words: Array
    sum: Array


class Memory(ArrayEnv[MemoryState]):
    """Every word of the state is multiplied and added to, and all are summed."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, state_bytes: int = 1024):
        if state_bytes % 16 or not 64 <= state_bytes <= 4 << 20:
            raise HeadraceError(
                f"state_bytes is {state_bytes}; it must be a multiple of 16 from 64 to {4 << 20}"
            )
        self.count = state_bytes // 4

    def reset(self, ns: Namespace, draws: ResetDraws) -> MemoryState:
        """Random words."""
        words = draws.words(self.count)
        return MemoryState(words, sum_events(ns, words))

    def step(
        self, ns: Namespace, state: MemoryState, action: Array
    ) -> tuple[MemoryState, Array, Array]:
        """A linear congruential generator in every word."""
        increment = ns.words(action) + ns.constant(1013904223)
        words = state.words * ns.constant(1664525) + increment[..., None]
        after = MemoryState(words, sum_events(ns, words))
        reward = ns.to_float(ns.shift_right(after.sum, 24)) * np.float32(1 / 256)
        return after, reward, ns.shift_right(after.sum, 22) == 0

    def observe(self, ns: Namespace, state: MemoryState) -> tuple[Array, ...]:
        """The four bytes of the sum, lowest first."""
        return tuple(
            ns.to_float(ns.shift_right(state.sum, 8 * byte) & 0xFF) * np.float32(1 / 256)
            for byte in range(4)
        )
