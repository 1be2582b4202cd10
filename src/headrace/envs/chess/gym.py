# SPDX-License-Identifier: Apache-2.0
"""Chess as Gymnasium environments, on python-chess: self-play by turns, and against chance.

Where a game ends, and what that is worth, is said in docs/chess.md. The limit of plies is the
registry's, as for any environment.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from headrace.envs.chess.encoding import (
    ACTIONS,
    COMPACT_PLANES,
    PLANES,
    action_mask,
    compact,
    legal_actions,
    move_of,
    planes,
)
from headrace.envs.chess.endings import random_ending
from headrace.envs.chess.extra import chess
from headrace.envs.chess.game import Game, read_fen
from headrace.envs.chess.players import random_move
from headrace.errors import HeadraceError, unknown

OBSERVATIONS = {"planes": (planes, PLANES), "compact": (compact, COMPACT_PLANES)}
ILLEGAL = ("error", "lose")
STARTS = ("game", "mixed")

Observation = npt.NDArray[np.uint8]


class ChessEnv(gymnasium.Env[Observation, np.integer]):
    """Both sides by turns. Everything is seen by the side to move; the reward is the mover's.

    With `start="mixed"` every other game, by chance, begins with an ending (see `endings`).
    `reset` and `step` give `info["action_mask"]`, which `action_space.sample(mask)` takes, and
    `info["to_play"]`, 0 for white and 1 for black. `reset(options={"fen": ...})` begins elsewhere.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 2}  # noqa: RUF012
    masked = True
    players = 2

    def __init__(
        self,
        observation: str = "planes",
        illegal: str = "error",
        start: str = "game",
        render_mode: str | None = None,
    ):
        """`illegal="lose"`: an illegal action loses the game; otherwise it is an error."""
        if observation not in OBSERVATIONS:
            raise unknown("observation", observation, OBSERVATIONS)
        if illegal not in ILLEGAL:
            raise unknown("value of illegal", illegal, ILLEGAL)
        if start not in STARTS:
            raise unknown("value of start", start, STARTS)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise unknown("render_mode", render_mode, self.metadata["render_modes"])
        self._encode, depth = OBSERVATIONS[observation]
        self._illegal_loses = illegal == "lose"
        self._mixed = start == "mixed"
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 255, (8, 8, depth), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(ACTIONS)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new game."""
        super().reset(seed=seed)
        fen = (options or {}).get("fen")
        if fen is None and self._mixed and self.np_random.integers(2):
            board = random_ending(self.np_random, mine=self.players == 1)
        else:
            board = None if fen is None else read_fen(fen)
        self.game = Game(board)
        self._after_move()
        if self._over:
            raise HeadraceError(f"'{fen}': this game has ended already")
        return self._observation()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a move."""
        number = int(action)
        if self._over or number not in self._legal:
            return self._refused(number)
        reward = self._play(self._legal[number])
        obs, info = self._observation()
        return obs, reward, self._over, False, info

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """The board as text or, with `render_mode="rgb_array"`, as an image [height, width, 3]."""
        if self.render_mode == "rgb_array":
            from headrace.envs.chess.picture import draw  # nobody else needs an image library

            return draw(self.game.board)
        return str(self.game.board) if self.render_mode == "ansi" else None

    def _play(self, move: chess.Move) -> float:
        """Play a legal move; returns what it is worth to the one who made it."""
        self.game.push(move)
        self._after_move()
        return float(self._outcome is not None and self._outcome.winner is not None)

    def _after_move(self) -> None:
        self._outcome = self.game.outcome()
        self._over = self._outcome is not None
        self._legal = legal_actions(self.game)

    def _observation(self) -> tuple[Observation, dict[str, Any]]:
        info: dict[str, Any] = {"action_mask": action_mask(self._legal)}
        if self.players > 1:
            info["to_play"] = int(self.game.board.turn == chess.BLACK)
        return self._encode(self.game), info

    def _refused(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """An action that is no legal move."""
        if self._over:
            raise HeadraceError("the game has ended; reset() begins a new one")
        if not self._illegal_loses:
            move = move_of(self.game.board, action) if 0 <= action < ACTIONS else None
            meaning = "leads off the board" if move is None else f"is {move.uci()}"
            raise HeadraceError(
                f"action {action} {meaning}, which is not legal in {self.game.board.fen()}"
            )
        self._over = True
        obs, info = self._observation()
        return obs, -1.0, True, False, info


class ChessVsRandomEnv(ChessEnv):
    """The agent's move and a random legal reply in one step; its colour is drawn per episode.

    From a FEN or an ending the agent plays the side to move. There is no `info["to_play"]`: it is
    the agent.
    """

    players = 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new game; where the agent has black, after white's first move."""
        beginning = super().reset(seed=seed, options=options)
        begun = bool(self.game.board.fullmove_number > 1) or "fen" in (options or {})
        if begun or self.np_random.integers(2) == 0:
            return beginning
        self._reply()
        return self._observation()

    def _play(self, move: chess.Move) -> float:
        reward = super()._play(move)
        return reward if self._over else -self._reply()

    def _reply(self) -> float:
        return super()._play(random_move(self.game, self.np_random))
