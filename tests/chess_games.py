# SPDX-License-Identifier: Apache-2.0
"""Games of chess in step with python-chess, which nobody here wrote."""

from collections.abc import Iterator

import chess
import numpy as np

from headrace.envs.chess import Position


def expected_outcome(board: chess.Board) -> str | None:
    """By python-chess; fifty moves and threefold repetition end a game without being claimed."""
    if board.is_checkmate():
        return "checkmate"
    if board.is_insufficient_material():
        return "insufficient material"
    if board.is_stalemate():
        return "stalemate"
    if board.halfmove_clock >= 100:
        return "fifty moves"
    return "threefold repetition" if board.is_repetition(3) else None


def assert_in_step(position: Position, board: chess.Board) -> None:
    """Everything that both know of a position."""
    fen = board.fen()
    assert position.fen == fen
    assert sorted(position.legal_moves) == sorted(move.uci() for move in board.legal_moves), fen
    assert position.in_check == board.is_check(), fen
    assert position.outcome == expected_outcome(board), fen
    times = position.repetitions
    assert times == 1 or board.is_repetition(times), fen
    assert not board.is_repetition(times + 1), fen


def play_in_step(start: chess.Board, generator: np.random.Generator, back: float) -> list[str]:
    """A random game to its end, compared at every ply; with probability `back` a move is undone.

    Returns the moves.
    """
    board, position = start.copy(), Position(start.fen())
    while True:
        assert_in_step(position, board)
        if position.outcome:
            return [move.uci() for move in board.move_stack]
        moves = list(board.legal_moves)
        move = moves[generator.integers(len(moves))]
        if len(board.move_stack) > 1 and generator.random() < back:
            last = board.move_stack[-2]
            retreat = chess.Move(last.to_square, last.from_square)
            move = retreat if retreat in moves else move
        board.push(move)
        position.play(move.uci())


def few_pieces(generator: np.random.Generator) -> chess.Board:
    """A legal position of some pieces, pawns mostly about to promote or to be taken en passant."""
    while True:
        board = chess.Board(None)
        squares = generator.permutation(64).tolist()
        for color in chess.COLORS:
            board.set_piece_at(squares.pop(), chess.Piece(chess.KING, color))
        for _ in range(generator.integers(0, 6)):
            kind = int(generator.integers(chess.PAWN, chess.KING))
            board.set_piece_at(squares.pop(), chess.Piece(kind, bool(generator.integers(2))))
        for _ in range(generator.integers(0, 4)):
            color = bool(generator.integers(2))
            rank = int(generator.choice([6, 6, 1, 4] if color else [1, 1, 6, 3]))
            square = chess.square(int(generator.integers(8)), rank)
            if board.piece_at(square) is None:
                board.set_piece_at(square, chess.Piece(chess.PAWN, color))
        board.turn = bool(generator.integers(2))
        board.halfmove_clock = int(generator.choice([0, 0, 50, 90]))
        if board.is_valid():
            return board


def endings(count: int, seed: int) -> Iterator[list[str]]:
    """Random games from positions of few pieces, full of repetitions."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield play_in_step(few_pieces(generator), generator, back=0.5)


def openings(count: int, seed: int) -> Iterator[list[str]]:
    """Random games from the beginning."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield play_in_step(chess.Board(), generator, back=0.1)


def expected_planes(history: list[chess.Board]) -> np.ndarray:
    """uint8 [8, 8, 119] of the last position, written from the documentation in docs/chess.md."""
    board, out = history[-1], np.zeros((8, 8, 119), np.uint8)
    me = board.turn

    def place(square: int) -> tuple[int, int]:
        rank, file = chess.square_rank(square), chess.square_file(square)
        return (7 - rank if me else rank), file

    for t, then in enumerate(history[::-1][:8]):
        for square, piece in then.piece_map().items():
            row, column = place(square)
            out[row, column, 14 * t + piece.piece_type - 1 + 6 * (piece.color != me)] = 1
        later = [one._transposition_key() for one in history[len(history) - t :]]
        again = then.is_repetition(2) or then._transposition_key() in later
        out[:, :, 14 * t + 12 + again] = 1
    for t in range(len(history), 8):  # before the game nothing was on the board
        out[:, :, 14 * t + 12] = 1
    out[:, :, 112] = not me
    out[:, :, 113] = min(len(board.move_stack) // 2, 255)
    out[:, :, 114] = board.has_queenside_castling_rights(me)
    out[:, :, 115] = board.has_kingside_castling_rights(me)
    out[:, :, 116] = board.has_queenside_castling_rights(not me)
    out[:, :, 117] = board.has_kingside_castling_rights(not me)
    out[:, :, 118] = min(board.halfmove_clock, 255)
    return out


def expected_compact(history: list[chess.Board]) -> np.ndarray:
    """uint8 [8, 8, 20] likewise."""
    board, planes = history[-1], expected_planes(history)
    out = np.zeros((8, 8, 20), np.uint8)
    out[:, :, :12] = planes[:, :, :12]
    out[:, :, 12:14] = planes[:, :, [13, 112]]
    out[:, :, 14:18] = planes[:, :, 114:118]
    if board.has_legal_en_passant() and board.ep_square is not None:
        rank, file = chess.square_rank(board.ep_square), chess.square_file(board.ep_square)
        out[7 - rank if board.turn else rank, file, 18] = 1
    out[:, :, 19] = planes[:, :, 118]
    return out
