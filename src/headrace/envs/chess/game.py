# SPDX-License-Identifier: Apache-2.0
"""A game of chess so far: python-chess's board, and what the rules need of its past.

Fifty moves without a capture or a pawn move, and a position that has occurred three times, end the
game at once: nobody has to claim the draw, and no move to come is looked at.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from headrace.envs.chess.extra import chess
from headrace.errors import HeadraceError

HISTORY = 8
"""Positions that an observation shows, the present one included."""

FIFTY_MOVES = 100
"""Plies without a capture or a pawn move that end the game."""


class Position(NamedTuple):
    """What two positions must share to be the same by the rules: FIDE's article 9.2."""

    pieces: tuple[tuple[int, ...], tuple[int, ...]]
    """Black's pawns, knights, bishops, rooks, queens and king as bitboards, then white's."""
    turn: chess.Color
    castling: chess.Bitboard
    en_passant: chess.Square | None
    """Only where the capture is legal."""


def position_of(board: chess.Board) -> Position:
    """The position on the board."""
    kinds = board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings
    black, white = board.occupied_co
    return Position(
        (tuple([kind & black for kind in kinds]), tuple([kind & white for kind in kinds])),
        board.turn,
        board.clean_castling_rights(),
        board.ep_square if board.ep_square is not None and board.has_legal_en_passant() else None,
    )


class Game:
    """A board that is played on, with its legal moves and how often each position has occurred."""

    def __init__(self, board: chess.Board | None = None):
        """Begin where a board stands; the moves played on it belong to the game."""
        moves = board.move_stack if board else []
        self.board = board.root() if board else chess.Board()
        self.recent: deque[Position] = deque(maxlen=HISTORY)
        """The last positions, the present one first."""
        self._occurred: Counter[Position] = Counter()
        self._note_position()
        for move in moves:
            self.push(move)

    def push(self, move: chess.Move) -> None:
        """Play a legal move."""
        self.board.push(move)
        self._note_position()

    def earlier(self, plies: int) -> Game:
        """The same game, so many moves ago."""
        board = self.board.copy()
        for _ in range(plies):
            board.pop()
        return Game(board)

    def _note_position(self) -> None:
        position = position_of(self.board)
        self.recent.appendleft(position)
        self._occurred[position] += 1
        self.legal_moves = list(self.board.legal_moves)

    @property
    def ply(self) -> int:
        """Moves of either side since the game began."""
        return len(self.board.move_stack)

    def occurrences(self, position: Position) -> int:
        """How often a position has occurred in the game so far."""
        return self._occurred[position]

    def outcome(self) -> chess.Outcome | None:
        """How the game has ended; None: it goes on."""
        board, ended = self.board, chess.Termination
        if not self.legal_moves and board.is_check():
            return chess.Outcome(ended.CHECKMATE, not board.turn)
        if board.is_insufficient_material():
            return chess.Outcome(ended.INSUFFICIENT_MATERIAL, None)
        if not self.legal_moves:
            return chess.Outcome(ended.STALEMATE, None)
        if board.halfmove_clock >= FIFTY_MOVES:
            return chess.Outcome(ended.FIFTY_MOVES, None)
        if self._occurred[self.recent[0]] >= 3:
            return chess.Outcome(ended.THREEFOLD_REPETITION, None)
        return None


def read_fen(fen: str) -> chess.Board:
    """The board that a FEN describes; an error where it is malformed, or no such game exists."""
    try:
        board = chess.Board(fen)
    except ValueError as error:
        raise HeadraceError(f"this is no FEN: {error}") from None
    if not board.is_valid():
        faults = [fault.name for fault in chess.Status if fault & board.status() and fault.name]
        text = ", ".join(fault.lower().replace("_", " ") for fault in faults)
        raise HeadraceError(f"'{fen}' is not a position of a game: {text}")
    return board
