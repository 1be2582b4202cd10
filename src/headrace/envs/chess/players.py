# SPDX-License-Identifier: Apache-2.0
"""Players: functions from a game, and a source of chance, to a legal move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.envs.chess.extra import chess
from headrace.envs.chess.game import Game

Player = Callable[[Game, np.random.Generator], chess.Move]

VALUES = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
MATE = 100


def random_move(game: Game, chance: np.random.Generator) -> chess.Move:
    """Any legal move."""
    return game.legal_moves[chance.integers(len(game.legal_moves))]


def greedy_move(game: Game, chance: np.random.Generator) -> chess.Move:
    """Mate where there is one, or else what wins most material at once; among equals any."""
    gains = [_gain(game.board, move) for move in game.legal_moves]
    most = max(gains)
    best = [move for move, gain in zip(game.legal_moves, gains, strict=True) if gain == most]
    return best[chance.integers(len(best))]


def _gain(board: chess.Board, move: chess.Move) -> int:
    """What a move wins at once, in pawns."""
    captured = board.piece_type_at(move.to_square)
    gain = VALUES[captured] if captured else int(board.is_en_passant(move))
    if move.promotion:
        gain += VALUES[move.promotion] - VALUES[chess.PAWN]
    board.push(move)
    mate = board.is_checkmate()
    board.pop()
    return MATE if mate else gain


PLAYERS: dict[str, Player] = {"random": random_move, "greedy": greedy_move}
