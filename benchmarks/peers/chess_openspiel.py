# SPDX-License-Identifier: Apache-2.0
"""Worker: OpenSpiel's chess from Python, with its observation of 20 planes.

A step does all that ours do: observation (as bytes) and mask (as bits), a random legal move, and
the whole transition written, with auto-reset.
"""

from __future__ import annotations

import argparse
import random
from importlib.metadata import version

import numpy as np
import pyspiel  # pyright: ignore[reportMissingImports]
from open_spiel.python.observation import make_observation  # pyright: ignore[reportMissingImports]
from protocol import Block, serve

STEPS = 256
PLY_LIMIT = 512


class Table:
    """One game, and the memory its transitions go to."""

    def __init__(self) -> None:
        self._game = pyspiel.load_game("chess")
        self._observation = make_observation(self._game)
        self._actions = self._game.num_distinct_actions()
        self._random = random.Random(0)
        width = self._observation.tensor.size
        self.obs = np.zeros((STEPS + 1, width), np.uint8)
        self.mask = np.zeros((STEPS + 1, (self._actions + 7) // 8), np.uint8)
        self.final_obs, self.final_mask = np.zeros_like(self.obs), np.zeros_like(self.mask)
        self.to_play = np.zeros(STEPS + 1, np.uint8)
        self.action = np.zeros(STEPS, np.uint16)
        self.reward = np.zeros(STEPS, np.float32)
        self.terminated = np.zeros(STEPS, np.bool_)
        self.truncated = np.zeros(STEPS, np.bool_)
        self._begin()
        self._write(self.obs, self.mask, STEPS)

    def run(self) -> int:
        """The next transitions."""
        for array in (self.obs, self.mask, self.to_play):
            array[0] = array[-1]
        for t in range(STEPS):
            player = self._state.current_player()
            action = self._random.choice(self._legal)
            self._state.apply_action(action)
            self._ply += 1
            over = self._state.is_terminal()
            self.action[t] = action
            self.reward[t] = self._state.player_return(player) if over else 0.0
            self.terminated[t] = over
            self.truncated[t] = cut = not over and self._ply >= PLY_LIMIT
            self._legal = self._state.legal_actions()
            if over or cut:
                self._write(self.final_obs, self.final_mask, t)
                self._begin()
            self._write(self.obs, self.mask, t + 1)
            self.to_play[t + 1] = self._state.current_player()
        return STEPS

    def _begin(self) -> None:
        self._state = self._game.new_initial_state()
        self._legal = self._state.legal_actions()
        self._ply = 0

    def _write(self, obs: np.ndarray, mask: np.ndarray, t: int) -> None:
        self._observation.set_from(self._state, max(self._state.current_player(), 0))
        obs[t] = self._observation.tensor
        legal = np.zeros(self._actions, np.uint8)
        legal[self._legal] = 1
        mask[t] = np.packbits(legal, bitorder="little")


def rules_alone() -> Block:
    """Random legal playouts, nothing observed or written."""
    game = pyspiel.load_game("chess")
    chance = random.Random(0)
    state = game.new_initial_state()

    def block() -> int:
        nonlocal state
        for _ in range(256):
            state.apply_action(chance.choice(state.legal_actions()))
            if state.is_terminal():
                state = game.new_initial_state()
        return 256

    return block


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observation", choices=["planes", "none"], default="planes")
    observation = parser.parse_args().observation
    block = rules_alone() if observation == "none" else Table().run
    serve(version("open_spiel"), block)


if __name__ == "__main__":
    main()
