# SPDX-License-Identifier: Apache-2.0
"""Moves as numbers and positions as planes, from python-chess: by hand, and by the native core."""

import chess
import numpy as np
import pytest
from python_games import random_games

from headrace.envs.chess import Position
from headrace.envs.chess.encoding import (
    ACTIONS,
    action_mask,
    action_of,
    compact,
    legal_actions,
    move_of,
    planes,
)
from headrace.envs.chess.game import Game

# ---- moves as numbers ----


def test_every_action_round_trips() -> None:
    """On an empty board but for the piece that moves; and there are AlphaZero's 1,858 in all."""
    meant = 0
    for turn in chess.COLORS:
        for action in range(ACTIONS):
            board = chess.Board.empty()
            board.turn = turn
            start = move_of(board, action)
            if start is None:
                continue
            board.set_piece_at(start.from_square, chess.Piece(chess.PAWN, turn))
            move = move_of(board, action)
            assert move is not None
            assert action_of(move, turn) == action
            # Under-promotions have an action on every rank, but one is a move on the seventh only.
            seventh = 6 if turn == chess.WHITE else 1
            under = move.promotion not in (None, chess.QUEEN)
            meant += not under or chess.square_rank(move.from_square) == seventh
    assert meant == 2 * 1858


@pytest.mark.parametrize(
    ("fen", "uci", "place", "plane"),
    [
        (chess.STARTING_FEN, "e2e4", 8 * 4 + 1, 17),
        (chess.STARTING_FEN, "e2e3", 8 * 4 + 1, 16),
        (chess.STARTING_FEN, "b1c3", 8 * 1 + 0, 72),
        (chess.STARTING_FEN, "g1f3", 8 * 6 + 0, 68),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", 8 * 4 + 0, 31),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1c1", 8 * 4 + 0, 28),
        ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "a1a7", 8 * 0 + 0, 21),
        ("2n1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7b8q", 8 * 1 + 6, 16),
        ("2n1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7c8q", 8 * 1 + 6, 44),
        ("2n1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7b8r", 8 * 1 + 6, 0),
        ("2n1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7c8b", 8 * 1 + 6, 4),
        ("4k3/8/8/8/8/8/1p6/N3K3 b - - 0 1", "b2a1n", 8 * 1 + 6, 8),
        ("4k3/8/8/8/8/8/8/q3K3 b - - 0 1", "a1c3", 8 * 0 + 7, 59),
    ],
)
def test_numbers_are_as_they_are_written_down(fen: str, uci: str, place: int, plane: int) -> None:
    board = chess.Board(fen)
    move = chess.Move.from_uci(uci)
    assert divmod(action_of(move, board.turn), 73) == (place, plane)
    assert move_of(board, 73 * place + plane) == move


def test_legal_actions_are_the_legal_moves() -> None:
    for game in random_games(12, seed=1):
        actions = legal_actions(game)
        assert set(actions.values()) == set(game.board.legal_moves)
        assert len(actions) == game.board.legal_moves.count()
        assert all(move_of(game.board, action) == move for action, move in actions.items())


# ---- positions as planes ----


def seen_by_mover(board: chess.Board, mover: chess.Color, square: int) -> chess.Piece | None:
    """By row and column of an observation, with the mover's pieces white."""
    row, column = divmod(square, 8)
    seen = board if mover == chess.WHITE else board.mirror()
    return seen.piece_at(chess.square(column, 7 - row))


def expected_planes(game: Game) -> np.ndarray:
    """The 119 planes, square by square, with python-chess's own history."""
    out = np.zeros((8, 8, 119), np.uint8)
    board, mover, total = game.board.copy(), game.board.turn, game.ply
    keys = []  # of all positions, the present one first
    replay = game.board.copy()
    while True:
        keys.append(replay.epd(en_passant="legal"))
        if not replay.move_stack:
            break
        replay.pop()
    for t in range(8):
        if t > total:
            out[:, :, 14 * t + 12] = 1
            continue
        for square in range(64):
            piece = seen_by_mover(board, mover, square)
            if piece:
                plane = piece.piece_type - 1 + (0 if piece.color == chess.WHITE else 6)
                out[square // 8, square % 8, 14 * t + plane] = 1
        out[:, :, 14 * t + 12 + (keys.count(keys[t]) > 1)] = 1
        if board.move_stack:
            board.pop()
    last = game.board
    rights = [
        right(color)
        for color in (mover, not mover)
        for right in (last.has_queenside_castling_rights, last.has_kingside_castling_rights)
    ]
    out[:, :, 112:] = (not mover, total // 2, *rights, last.halfmove_clock)
    return out


def test_planes_square_by_square() -> None:
    repeated = 0
    for number, game in enumerate(random_games(8, seed=2)):
        if number % 12 and not 8 < game.ply < 11:
            continue
        np.testing.assert_array_equal(planes(game), expected_planes(game))
        assert planes(game).dtype == np.uint8
        repeated += planes(game)[0, 0, 13::14].any()
    assert repeated > 0


def test_the_compact_form_is_part_of_the_planes() -> None:
    en_passant = 0
    for game in random_games(12, seed=3):
        full, small = planes(game), compact(game)
        same = [*range(12), 13, 112, 114, 115, 116, 117, 118]
        np.testing.assert_array_equal(np.delete(small, 18, 2), full[:, :, same])
        board = game.board
        expected = np.zeros((8, 8), np.uint8)
        if board.has_legal_en_passant():
            assert board.ep_square is not None
            square = board.ep_square if board.turn == chess.WHITE else board.ep_square ^ 56
            expected[7 - square // 8, square % 8] = 1
            en_passant += 1
        np.testing.assert_array_equal(small[:, :, 18], expected)
    assert en_passant > 0


def test_both_colours_see_the_same() -> None:
    """A position mirrored in colour gives the same actions and planes, but for the colour."""
    for game in random_games(4, seed=4):
        mirrored = Game(game.board.mirror())
        other = Game(chess.Board(game.board.fen()))
        assert sorted(legal_actions(other)) == sorted(legal_actions(mirrored))
        for encode, colour in ((planes, 112), (compact, 13)):
            ours, theirs = encode(other), encode(mirrored)
            assert (ours[..., colour] != theirs[..., colour]).all()
            ours[..., colour] = theirs[..., colour]
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(3))
def test_the_native_core_sees_the_same(seed: int) -> None:
    """Observations, masks, outcomes and repetitions, also of positions with few pieces."""
    native = Position()
    for game in random_games(40, seed=10 + seed):
        if game.ply == 0:
            native = Position(game.board.fen())
        else:
            native.play(game.board.peek().uci())
        np.testing.assert_array_equal(native.observation("planes"), planes(game))
        np.testing.assert_array_equal(native.observation("compact"), compact(game))
        assert native.legal_actions == sorted(legal_actions(game))
        np.testing.assert_array_equal(native.mask(), action_mask(legal_actions(game)))
        assert native.repetitions == game.occurrences(game.recent[0])
        outcome = game.outcome()
        reason = outcome and outcome.termination.name.lower().replace("_", " ")
        assert native.outcome == reason
