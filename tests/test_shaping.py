# SPDX-License-Identifier: Apache-2.0
"""Material, counted on observations, against the pieces of the position itself."""

import numpy as np
import pytest

import headrace
from headrace import HeadraceError
from headrace.envs.array.namespace import namespace
from headrace.envs.chess.native import START, Position
from headrace.learn.ppo import Config, Ppo
from headrace.learn.shaping import material, material_shaping

NS = namespace("numpy")
WORTH = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9, "k": 0}


def counted(fen):
    """What the side to move is ahead, from the text."""
    board, turn = fen.split()[:2]
    white = sum(WORTH[c.lower()] * (1 if c.isupper() else -1) for c in board if c.isalpha())
    return white if turn == "w" else -white


@pytest.mark.parametrize("form", ["planes", "compact"])
@pytest.mark.parametrize(
    ("fen", "move", "won"),
    [
        (START, "e2e4", 0),
        ("rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2", "e4d5", 1),
        ("8/P6k/8/8/8/8/8/K7 w - - 0 1", "a7a8q", 8),
        ("k7/8/8/8/3q4/8/8/K2R4 w - - 0 1", "d1d4", 9),
        ("k7/8/8/8/3q4/8/K7/3R4 b - - 0 1", "d4d1", 5),
    ],
)
def test_a_moves_gain_is_the_mans_that_moved(fen, move, won, form):
    game = Position(fen)
    before = game.observation(form)[None]
    assert material(NS, before) == [counted(fen)]
    game.play(move)
    after = game.observation(form)[None]
    assert material(NS, after) == [counted(game.fen)]
    sign, discount = np.float32([-1]), 0.5
    ahead, then = np.tanh(np.float32([counted(fen), counted(fen) + won]) / 8)
    shaping = material_shaping(NS, before, after, np.array([False]), sign, discount)
    np.testing.assert_allclose(shaping, [discount * then - ahead], rtol=1e-5, atol=1e-7)
    over = material_shaping(NS, before, after, np.array([True]), sign, discount)
    np.testing.assert_allclose(over, [-ahead], rtol=1e-6)  # all that was won is given back


def test_material_is_for_boards():
    with pytest.raises(HeadraceError, match="on chess boards only"):
        Ppo(headrace.spec("CartPole-v1"), Config(material_weight=0.1))
