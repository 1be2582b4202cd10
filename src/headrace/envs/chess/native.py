# SPDX-License-Identifier: Apache-2.0
"""Positions, moves and perft, by the very rules that the native environments play by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace import _native
from headrace.envs.native import NativeDefinition, default_isa
from headrace.errors import HeadraceError, unknown

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
ACTIONS = 4672
MAX_PLIES = 512
"""Of a game of `Chess-v0`, unless another limit is asked for."""
_DEPTH_OF_A_CALL = 5
"""Perft goes deeper in Python, so that Ctrl-C is heard at least every few seconds."""
_MOVES_OF_A_CALL = 1 << 22
"""Playouts likewise."""


class Position:
    """A game from some position on. Moves are UCI ("e2e4", "e7e8q"), castling is the king's move.

    Actions are the environments' numbers: 73 * (8 * file + rank) + plane, as the side to move sees
    the board.
    """

    def __init__(self, fen: str = START, isa: str | None = None):
        if not isinstance(fen, str):
            raise HeadraceError(f"the FEN is {fen!r:.40}; it must be text")
        try:
            self._game = _native.ChessGame(isa or default_isa())
        except ValueError as error:
            raise HeadraceError(str(error)) from None
        try:
            self._game.set_up(fen)
        except ValueError as error:
            raise HeadraceError(f"FEN {fen!r:.120}: {error}") from None

    @property
    def fen(self) -> str:
        """The position; its en-passant square is there if there is a legal capture."""
        return self._game.fen()

    @property
    def legal_moves(self) -> list[str]:
        """As UCI, in the order of `legal_actions`."""
        return self._game.legal_moves()

    @property
    def legal_actions(self) -> list[int]:
        """From the smallest."""
        return self._game.legal_actions()

    @property
    def in_check(self) -> bool:
        """Whether the side to move is."""
        return self._game.in_check()

    @property
    def turn(self) -> Literal["white", "black"]:
        """The side to move."""
        return "black" if self._game.black_to_move() else "white"

    @property
    def outcome(self) -> str | None:
        """Why the game is over, if it is.

        "checkmate" (of the side to move), "insufficient material", "stalemate", "fifty moves" or
        "threefold repetition": the first that holds.
        """
        name = self._game.outcome()
        return None if name == "none" else name

    @property
    def repetitions(self) -> int:
        """How often this position has occurred in the game, this time included."""
        return self._game.occurrences()

    def play(self, move: str | int) -> None:
        """Play a legal move or action; the game may go on after it is over."""
        if isinstance(move, str):
            move = self.action(move)
        self._require(move)
        self._game.play(move)

    def action(self, move: str) -> int:
        """The number of a legal move."""
        actions = dict(zip(self.legal_moves, self.legal_actions, strict=True))
        if move not in actions:
            raise HeadraceError(f"move {move!r:.20} is illegal in {self.fen}")
        return actions[move]

    def uci(self, action: int) -> str:
        """The name of a legal action."""
        self._require(action)
        return self._game.uci(action)

    def mask(self) -> npt.NDArray[np.bool_]:
        """Which of the 4,672 actions are legal."""
        bits = np.zeros(ACTIONS // 8, np.uint8)
        self._game.write_mask(bits)
        return np.unpackbits(bits, bitorder="little").astype(bool)

    def observation(self, form: Literal["planes", "compact"] = "planes") -> npt.NDArray[np.uint8]:
        """What the side to move sees: uint8 [8, 8, 119] or [8, 8, 20]."""
        writers = {
            "planes": (self._game.write_planes, 119),
            "compact": (self._game.write_compact, 20),
        }
        if form not in writers:
            raise unknown("observation", form, writers)
        write, planes = writers[form]
        out = np.zeros((8, 8, planes), np.uint8)
        write(out)
        return out

    def perft(self, depth: int) -> int:
        """How many sequences of `depth` legal moves there are."""
        if not isinstance(depth, int) or depth < 0:
            raise HeadraceError(f"depth is {depth!r}; it must be a whole number of at least 0")
        if depth <= _DEPTH_OF_A_CALL:
            return self._game.perft(depth)
        return sum(after.perft(depth - 1) for after in self._each_next())

    def divide(self, depth: int) -> dict[str, int]:
        """Perft behind each move."""
        if not isinstance(depth, int) or depth < 1:
            raise HeadraceError(f"depth is {depth!r}; it must be a whole number of at least 1")
        leaves = [after.perft(depth - 1) for after in self._each_next()]
        return dict(zip(self.legal_moves, leaves, strict=True))

    def copy(self) -> Position:
        """The same game, to go another way."""
        other = Position.__new__(Position)
        other._game = self._game.copy()
        return other

    def _require(self, action: int) -> None:
        if action not in self.legal_actions:
            raise HeadraceError(f"action {action!r:.20} is illegal in {self.fen}")

    def _each_next(self) -> Iterable[Position]:
        for action in self.legal_actions:
            after = self.copy()
            after._game.play(action)
            yield after


def perft(fen: str, depth: int) -> int:
    """How many sequences of `depth` legal moves there are: the usual proof of a move generator."""
    return Position(fen).perft(depth)


def divide(fen: str, depth: int) -> dict[str, int]:
    """Perft behind each move, by UCI: to find a fault."""
    return Position(fen).divide(depth)


def playouts(games: int, plies: int, *, seed: int = 0, threads: int = 1) -> int:
    """Make `plies` random legal moves on each of `games` boards, by the rules alone.

    Nothing is observed and nothing kept. A game that is over, or 512 plies long, is followed by a
    new one: these are the games that collectors of `Chess-v0` play with this seed. Returns how many
    have ended.
    """
    for name, value in (("games", games), ("plies", plies), ("threads", threads)):
        if not isinstance(value, int) or value < 1:
            raise HeadraceError(f"{name} is {value!r}; it must be a whole number of at least 1")
    native = NativeDefinition("Chess-v0", {"observation": "compact"})
    state = native.make_state(games, seed)
    native.kernel.reset(state, np.zeros((games, 8, 8, 20), np.uint8))
    stride = max(1, _MOVES_OF_A_CALL // games)
    for clock in range(0, plies, stride):
        native.kernel.advance(
            state,
            num_envs=games,
            steps=min(stride, plies - clock),
            clock=clock,
            max_episode_steps=MAX_PLIES,
            threads=threads,
        )
    begun = native.book(state)[_native.BOOKKEEPING.index("episode")]
    return int(begun.sum()) - games


def legal_moves(fen: str) -> list[str]:
    """The legal moves as UCI."""
    return Position(fen).legal_moves


def fen_after(fen: str, moves: Iterable[str]) -> str:
    """The position after these moves."""
    return _after(fen, moves).fen


def outcome(fen: str, moves: Iterable[str] = ()) -> str | None:
    """Why the game is over after these moves, if it is; see `Position.outcome`."""
    return _after(fen, moves).outcome


def repetitions(fen: str, moves: Iterable[str]) -> int:
    """How often the position after these moves has occurred, the last time included."""
    return _after(fen, moves).repetitions


def _after(fen: str, moves: Iterable[str]) -> Position:
    position = Position(fen)
    for move in moves:
        position.play(move)
    return position
