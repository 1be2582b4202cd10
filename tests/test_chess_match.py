# SPDX-License-Identifier: Apache-2.0
"""Policies of runs that learnt chess, as players: one that knows nothing yet will do."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.envs.chess.game import Game
from headrace.envs.chess.players import PLAYERS
from headrace.learn.ppo import Config, Ppo
from headrace.report.chess_match import play_match
from headrace.report.play import find_player
from headrace.train.model import TrainedPolicy, save_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    spec = headrace.spec("Chess-v0")
    config = Config(network="mlp", hidden=(8,))
    algorithm = Ppo(spec, config)
    acting = algorithm.acting(algorithm.init(3))
    save_model(tmp_path, algorithm, acting, dataclasses.asdict(config))
    return tmp_path


def test_a_match(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def resigned(game: Game, chance: np.random.Generator) -> object:
        seen.append(game.ply)
        return PLAYERS["random"](game, chance)

    monkeypatch.setitem(PLAYERS, "watched", resigned)  # pyright: ignore[reportArgumentType]
    trained = headrace.load_policy(folder)
    scores = play_match(trained, "watched", 4, seed=1)
    assert set(scores.tolist()) <= {0.0, 0.5, 1.0}
    assert seen.count(0) == seen.count(1) == 2  # it had white in two of four
    again = play_match(trained, "random", 4, seed=1)
    assert again.tolist() == scores.tolist()
    assert "unknown player 'gredy'; did you mean greedy?" in refusal(
        lambda: play_match(trained, "gredy", 2, 0)
    )


def test_the_winner_gets_the_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fool's mate: as black the opponent wins, by a policy that plays into it."""
    trained = headrace.load_policy(folder)
    fools = iter(["e5", "Qh4#"])

    def black(game: Game, chance: np.random.Generator) -> object:
        return game.board.parse_san(next(fools))

    class Fool:
        def __init__(self, *_: object) -> None:
            self.moves = iter(["f3", "g4"])

        def __call__(self, boards: list[Game], which: np.ndarray, ply: int) -> list:
            return [(i, boards[i].board.parse_san(next(self.moves))) for i in which]

    monkeypatch.setattr("headrace.report.chess_match._Batched", Fool)
    monkeypatch.setitem(PLAYERS, "mate", black)  # pyright: ignore[reportArgumentType]
    assert play_match(trained, "mate", 1, 0).tolist() == [0.0]


def test_a_run_plays_in_the_terminal(folder: Path) -> None:
    player, game = find_player(str(folder)), Game()
    chance = np.random.default_rng(0)
    for _ in range(10):
        move = player(game, chance)
        assert move in game.legal_moves
        game.push(move)
    assert "or give the folder of a run" in refusal(lambda: find_player("nobody"))


def test_another_environments_run_does_not_play(tmp_path: Path) -> None:
    algorithm = Ppo(headrace.spec("CartPole-v1"), Config(hidden=(8,)))
    acting = algorithm.acting(algorithm.init(0))
    save_model(tmp_path, algorithm, acting, dataclasses.asdict(algorithm.config))
    trained = headrace.load_policy(tmp_path)
    assert isinstance(trained, TrainedPolicy)
    assert "the run learnt CartPole-v1" in refusal(lambda: play_match(trained, "random", 2, 0))
    assert "learnt CartPole-v1, not chess" in refusal(lambda: find_player(str(tmp_path)))
