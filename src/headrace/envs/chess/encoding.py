# SPDX-License-Identifier: Apache-2.0
"""Chess as numbers, from python-chess: moves as actions, positions as planes.

Both are AlphaZero's in Pgx's order, and those of native/envs/chess/action.hpp and planes.hpp, where
they are written down. Everything is seen by the player to move: his pawns go up, whoever he is, and
files keep their place.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from headrace.envs.chess.extra import chess
from headrace.envs.chess.game import HISTORY, Game

ACTION_PLANES = 73
ACTIONS = 64 * ACTION_PLANES
STEP_PLANES = 14
PLANES = HISTORY * STEP_PLANES + 7
COMPACT_PLANES = 20

UNDERPROMOTIONS = (chess.ROOK, chess.BISHOP, chess.KNIGHT)
DIRECTIONS = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (1, 1), (-1, 1), (1, -1))
JUMPS = ((-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2))

Part = tuple[int, int, int | None]
"""From, to and an under-promotion: all of a move but whether it makes a queen."""


def _steps() -> list[tuple[int, int, int | None]]:
    """Files, ranks and under-promotion of the 73 planes."""
    steps: list[tuple[int, int, int | None]] = [
        (files, 1, piece) for piece in UNDERPROMOTIONS for files in (0, 1, -1)
    ]
    for number, (files, ranks) in enumerate(DIRECTIONS):
        distances = range(1, 8) if number % 2 else range(7, 0, -1)
        steps += [(files * distance, ranks * distance, None) for distance in distances]
    return steps + [(files, ranks, None) for files, ranks in JUMPS]


def _parts(turn: chess.Color) -> list[Part | None]:
    """What each action means to the player of this colour; None where it leaves the board."""
    turned = 0 if turn == chess.WHITE else 56
    parts: list[Part | None] = []
    for place in range(64):
        file, rank = divmod(place, 8)
        for files, ranks, piece in _steps():
            inside = 0 <= file + files < 8 and 0 <= rank + ranks < 8
            start = chess.square(file, rank) ^ turned
            end = chess.square(file + files, rank + ranks) ^ turned
            parts.append((start, end, piece) if inside else None)
    return parts


_PARTS = [_parts(turn) for turn in (chess.BLACK, chess.WHITE)]
_ACTIONS = [{part: number for number, part in enumerate(parts) if part} for parts in _PARTS]


def action_of(move: chess.Move, turn: chess.Color) -> int:
    """The number of a move that the player of this colour makes."""
    piece = None if move.promotion == chess.QUEEN else move.promotion
    return _ACTIONS[turn][move.from_square, move.to_square, piece]


def move_of(board: chess.Board, action: int) -> chess.Move | None:
    """The move that an action means on this board, legal or not; None where it leaves the board."""
    part = _PARTS[board.turn][action]
    if part is None:
        return None
    start, end, promotion = part
    if promotion is None and board.piece_type_at(start) == chess.PAWN:
        last_rank = 7 if board.turn == chess.WHITE else 0
        promotion = chess.QUEEN if chess.square_rank(end) == last_rank else None
    return chess.Move(start, end, promotion)


def legal_actions(game: Game) -> dict[int, chess.Move]:
    """The legal moves by number."""
    turn = game.board.turn
    return {action_of(move, turn): move for move in game.legal_moves}


def action_mask(actions: Iterable[int]) -> npt.NDArray[np.int8]:
    """1 for these actions: what `Discrete.sample` takes."""
    mask = np.zeros(ACTIONS, np.int8)
    mask[list(actions)] = 1
    return mask


def planes(game: Game) -> npt.NDArray[np.uint8]:
    """The position and the seven before it: [8, 8, 119]; row 0 is the mover's eighth rank."""
    turn = game.board.turn
    words: list[int] = []
    for position in game.recent:
        words += position.pieces[turn]
        words += position.pieces[not turn]
        words += (0, chess.BB_ALL) if game.occurrences(position) > 1 else (chess.BB_ALL, 0)
    before = HISTORY - len(game.recent)  # positions before the game's first
    words += (*(0,) * 12, chess.BB_ALL, 0) * before
    out = np.empty((8, 8, PLANES), np.uint8)
    out[..., : HISTORY * STEP_PLANES] = _squares(words, turn)
    clock = min(game.board.halfmove_clock, 255)
    out[..., HISTORY * STEP_PLANES :] = (
        turn == chess.BLACK, min(game.ply // 2, 255), *_castling(game), clock
    )  # fmt: skip
    return out


def compact(game: Game) -> npt.NDArray[np.uint8]:
    """The position alone: [8, 8, 20]; row 0 is the mover's eighth rank."""
    position = game.recent[0]
    turn = position.turn
    en_passant = 0 if position.en_passant is None else chess.BB_SQUARES[position.en_passant]
    out = np.empty((8, 8, COMPACT_PLANES), np.uint8)
    out[..., :12] = _squares([*position.pieces[turn], *position.pieces[not turn]], turn)
    out[..., 12:18] = game.occurrences(position) > 1, turn == chess.BLACK, *_castling(game)
    out[..., 18:19] = _squares([en_passant], turn)
    out[..., 19] = min(game.board.halfmove_clock, 255)
    return out


def _squares(bitboards: list[int], turn: chess.Color) -> npt.NDArray[np.uint8]:
    """Bitboards as the player of this colour sees them: [8, 8, number], ones and zeros."""
    ranks = np.array(bitboards, "<u8").view(np.uint8).reshape(-1, 8)
    if turn == chess.WHITE:
        ranks = ranks[:, ::-1]
    squares = np.unpackbits(ranks, axis=None, bitorder="little").reshape(-1, 8, 8)
    return squares.transpose(1, 2, 0)


def _castling(game: Game) -> tuple[bool, bool, bool, bool]:
    """Whether the mover may still castle long and short, and the opponent."""
    rights = game.recent[0].castling
    black = bool(rights & chess.BB_A8), bool(rights & chess.BB_H8)
    white = bool(rights & chess.BB_A1), bool(rights & chess.BB_H1)
    return (*white, *black) if game.board.turn == chess.WHITE else (*black, *white)
