# SPDX-License-Identifier: Apache-2.0
"""Endings to learn from: one side has an army, the other little besides its king.

Whole games seldom come that far, and then end with one lesson; here every game is one.
"""

from __future__ import annotations

import numpy as np

from headrace.envs.chess.extra import chess

ARMY = (chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT, chess.PAWN)
LIKELY = np.array([2, 2, 1, 1, 2]) / 8
OTHERS = (chess.PAWN, chess.KNIGHT, chess.BISHOP)
OTHERS_LIKELY = np.array([2, 1, 1]) / 4
MOVE_NUMBER = 60


def random_ending(chance: np.random.Generator, *, mine: bool) -> chess.Board:
    """One that goes on; the army is that of the side to move, or `mine` False, of either.

    It has a queen or a rook, and up to three more men; the other side up to two.
    """
    while True:
        turn = bool(chance.integers(2))
        owner = turn if mine or chance.integers(2) else not turn
        men = [(chess.KING, owner), (chess.KING, not owner)]
        men += [(int(chance.choice((chess.QUEEN, chess.ROOK))), owner)]
        more, others = chance.integers(4), chance.integers(3)
        men += [(int(man), owner) for man in chance.choice(ARMY, more, p=LIKELY)]
        men += [(int(man), not owner) for man in chance.choice(OTHERS, others, p=OTHERS_LIKELY)]
        board = chess.Board(None)
        board.turn, board.fullmove_number = turn, MOVE_NUMBER
        for square, (man, color) in zip(
            chance.choice(64, len(men), replace=False), men, strict=True
        ):
            board.set_piece_at(int(square), chess.Piece(man, color))
        if board.is_valid() and not board.is_game_over():
            return board
