# SPDX-License-Identifier: Apache-2.0
"""Chess by the native core: the rules against python-chess, and against published numbers."""

import chess
import chess_games
import numpy as np
import pytest
from refusals import refusal

from headrace.envs.chess import Position, divide, fen_after, legal_moves, outcome, perft
from headrace.envs.chess import repetitions as count_repetitions
from headrace.envs.chess.native import START

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def test_perft() -> None:
    assert perft(START, 5) == 4_865_609
    assert perft(KIWIPETE, 4) == 4_085_603
    assert sum(divide(KIWIPETE, 3).values()) == 97_862
    assert divide(START, 2) == dict.fromkeys(legal_moves(START), 20)
    assert perft(START, 0) == 1


@pytest.mark.slow
def test_perft_deep() -> None:
    assert perft(START, 6) == 119_060_324
    assert perft(KIWIPETE, 5) == 193_690_690


def test_games_from_the_beginning() -> None:
    reasons = {outcome(START, moves) for moves in chess_games.openings(100, seed=1)}
    assert {"checkmate", "insufficient material"} <= reasons


def test_endings_full_of_repetitions_and_promotions() -> None:
    games = list(chess_games.endings(250, seed=2))
    assert any(len(move) == 5 and move[-1] != "q" for moves in games for move in moves)
    assert max(map(len, games)) > 50


@pytest.mark.slow
def test_ten_thousand_games() -> None:
    assert len(list(chess_games.openings(5000, seed=3))) == 5000
    assert len(list(chess_games.endings(5000, seed=4))) == 5000


def test_every_reason_to_end() -> None:
    shuffle = ["g1f3", "g8f6", "f3g1", "f6g8"]
    assert outcome(START, shuffle) is None
    assert count_repetitions(START, shuffle) == 2
    assert outcome(START, 2 * shuffle) == "threefold repetition"
    assert outcome(START, ["f2f3", "e7e5", "g2g4", "d8h4"]) == "checkmate"
    assert outcome("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1") == "stalemate"
    assert outcome("7k/8/6K1/8/8/8/8/6N1 b - - 0 1") == "insufficient material"
    assert outcome("7k/8/6K1/8/8/8/8/6R1 b - - 99 80", ["h8g8"]) == "fifty moves"
    assert outcome("R6k/8/6K1/8/8/8/8/8 b - - 100 80") == "checkmate"  # which comes first


def test_an_en_passant_square_counts_only_if_the_capture_is_legal() -> None:
    assert fen_after(START, ["e2e4"]).split()[3] == "-"
    assert fen_after(START, ["e2e4", "a7a6", "e4e5", "d7d5"]).split()[3] == "d6"
    pinned = "8/8/8/8/k2p3Q/8/4P3/4K3 w - - 0 1"
    assert fen_after(pinned, ["e2e4"]).split()[3] == "-"


def test_colours_are_symmetric() -> None:
    """A position and its mirror image look the same to whoever moves, but for one plane."""
    generator = np.random.default_rng(5)
    for _ in range(300):
        board = chess_games.few_pieces(generator)
        mine, theirs = Position(board.fen()), Position(board.mirror().fen())
        assert mine.legal_actions == theirs.legal_actions
        planes, mirrored = mine.observation(), theirs.observation()
        assert (planes[..., 112] != mirrored[..., 112]).all()
        planes[..., 112] = mirrored[..., 112] = 0
        np.testing.assert_array_equal(planes, mirrored)


def test_actions_and_moves() -> None:
    """Each legal action is one move, and the mask has them all."""
    generator = np.random.default_rng(6)
    for _ in range(100):
        position = Position(chess_games.few_pieces(generator).fen())
        actions = position.legal_actions
        assert actions == np.flatnonzero(position.mask()).tolist()
        moves = [position.uci(action) for action in actions]
        assert moves == position.legal_moves
        assert len(set(moves)) == len(moves)
        assert [position.action(move) for move in moves] == actions


def test_all_actions_encode_what_they_decode() -> None:
    """An action is where a piece comes from and how it moves: 1,456 ways as a queen, and so on."""
    from headrace._native import ChessGame

    from headrace.envs.native import default_isa

    game = ChessGame(default_isa())
    again = [game.encoded_again(action) for action in range(4672)]
    assert all(other in (action, -1) for action, other in enumerate(again))
    assert sum(other >= 0 for other in again) == 1456 + 336 + 3 * 7 * 22


BAD_FENS = [
    ("", "a FEN has six fields"),
    ("8/8/8/8 w - - 0 1", "there are 4 ranks; there must be 8"),
    (START.replace("w", "x"), "the side to move is 'x'; it must be w or b"),
    (START.replace("KQkq", "KQxq"), "castling is 'KQxq'"),
    (START.replace("KQkq", "KK"), "castling 'K' is there twice"),
    ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "the king or the rook is not at home"),
    (START.replace("8/8/8/8", "8/8/8/9"), "'9' on rank 3 is no piece"),
    (START.replace("8/8/8/8", "8/8/8/44"), "rank 3 has two numbers in a row"),
    (START.replace("PPPPPPPP", "PPPPPPP"), "rank 2 has 7 squares; it must have 8"),
    (START.replace("PPPPPPPP", "PPPPPPPPP"), "rank 2 has more than 8 squares"),
    (START.replace("K", "Q", 1), "white has 0 kings"),
    ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "there is a pawn on a1"),
    ("4k3/8/8/8/8/8/8/4R1K1 w - - 0 1", "black is in check, but it is white's turn"),
    (START.replace("- 0", "e3 0"), "the en-passant square is 'e3'; it must be - or on rank 6"),
    (START.replace("- 0", "e6 0"), "en passant on e6 is impossible"),
    (START.replace("0 1", "-1 1"), "the half-move clock is '-1'"),
    (START.replace("0 1", "0 0"), "the move number is '0'"),
    (START + " x", "a FEN has six fields; there is more"),
    ("k7/8/8/8/8/8/PPPPPPPP/PNBQKBNR w - - 0 1", "white has 9 pawns; 8 are possible"),
]


@pytest.mark.parametrize(("fen", "expected"), BAD_FENS)
def test_bad_positions(fen: str, expected: str) -> None:
    assert expected in refusal(lambda: Position(fen))


def test_other_bad_input() -> None:
    assert "move 'e2e5' is illegal in rnbq" in refusal(lambda: Position().play("e2e5"))
    assert "action 7 is illegal" in refusal(lambda: Position().play(7))
    assert "move 'e2e5' is illegal in rnbq" in refusal(lambda: Position().action("e2e5"))
    assert "action 9999 is illegal in rnbq" in refusal(lambda: Position().uci(9999))
    assert "unknown observation 'plane'; did you mean planes" in refusal(
        lambda: Position().observation("plane")  # pyright: ignore[reportArgumentType]
    )
    assert "the FEN is None; it must be text" in refusal(lambda: perft(None, 1))  # pyright: ignore
    assert "depth is -1" in refusal(lambda: perft(START, -1))
    assert "must be a whole number of at least 1" in refusal(lambda: divide(START, 0))
    assert refusal(lambda: Position(isa="v9")).startswith("instruction set 'v9'")


def test_positions_that_are_possible_are_taken() -> None:
    """Whatever python-chess holds to be valid."""
    generator = np.random.default_rng(7)
    for _ in range(500):
        fen = chess_games.few_pieces(generator).fen()
        assert Position(fen).fen == chess.Board(fen).fen()
