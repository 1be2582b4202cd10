# SPDX-License-Identifier: Apache-2.0
"""Games that begin with endings: legal ones, by python-chess, with an army against little."""

from collections.abc import Iterator

import chess
import numpy as np
import pytest

import headrace
from headrace.envs.chess.encoding import action_mask, legal_actions
from headrace.envs.chess.game import Game
from headrace.envs.chess.gym import ChessEnv, ChessVsRandomEnv

MEN = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)
COUNT = 400


def board_of(planes: np.ndarray) -> chess.Board:
    """What an observation of a game without castling rights shows."""
    black = bool(planes[0, 0, 112])
    board = chess.Board(None)
    board.turn = not black
    for row, file, plane in np.argwhere(planes[..., :12]):
        square = chess.square(int(file), int(row if black else 7 - row))
        color = board.turn if plane < 6 else not board.turn
        board.set_piece_at(square, chess.Piece(MEN[plane % 6], color))
    return board


def native(env: str) -> Iterator[tuple[chess.Board, np.ndarray]]:
    """Endings among the first positions of as many games, and their masks."""
    envs = headrace.make_vec(env, COUNT, start="mixed")
    obs, info = envs.reset(seed=3)
    for planes, mask in zip(obs, info["action_mask"], strict=True):
        if planes[..., :12].sum() < 30:
            yield board_of(planes), mask
    envs.close()


def of_gymnasium(env: str) -> Iterator[tuple[chess.Board, np.ndarray]]:
    played = {"Chess-v0": ChessEnv, "ChessVsRandom-v0": ChessVsRandomEnv}[env](start="mixed")
    for seed in range(COUNT):
        _, info = played.reset(seed=seed)
        if len(played.game.board.piece_map()) < 30:
            yield played.game.board, info["action_mask"]


@pytest.mark.parametrize("env", ["Chess-v0", "ChessVsRandom-v0"])
@pytest.mark.parametrize("definition", [native, of_gymnasium])
def test_half_of_all_games_begin_with_an_ending(env, definition):
    worth = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
    boards, ahead, turns = set(), [], []
    for board, mask in definition(env):
        assert board.is_valid()
        assert not board.is_game_over()
        np.testing.assert_array_equal(mask, action_mask(legal_actions(Game(board))))
        sides = [board.occupied_co[board.turn], board.occupied_co[not board.turn]]
        few, army = sorted(side.bit_count() for side in sides)
        assert few <= 3
        assert army <= 5
        material = [
            sum(
                worth.get(man.piece_type, 0) for man in board.piece_map().values() if man.color == c
            )
            for c in (board.turn, not board.turn)
        ]
        ahead.append(material[0] > material[1])
        turns.append(board.turn)
        boards.add(board.fen())
    assert 0.4 * COUNT < len(boards) < 0.6 * COUNT  # nor any twice
    assert 0.4 < np.mean(turns) < 0.6
    if env == "Chess-v0":
        assert 0.35 < np.mean(ahead) < 0.6
    else:  # two minor men may be worth more than a rook
        assert np.mean(ahead) > 0.9


def test_the_same_seed_is_the_same_ending():
    first, again = ([board.fen() for board, _ in native("Chess-v0")] for _ in range(2))
    assert first == again


def test_evaluations_are_whole_games():
    from headrace.train.resolve import resolve
    from headrace.train.session import environment, evaluation_environment

    for env in ("Chess-v0", "ChessVsRandom-v0"):
        config = resolve(env, options={"start": "mixed", "observation": "compact"})
        assert environment(config).options["start"] == "mixed"
        played = evaluation_environment(config)
        assert played.id == "ChessVsRandom-v0"
        assert played.options["observation"] == "compact"
        assert played.options.get("start", "game") == "game"
