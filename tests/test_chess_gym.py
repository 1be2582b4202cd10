# SPDX-License-Identifier: Apache-2.0
"""The Gymnasium environments of chess, against python-chess's own answers and the rules."""

import subprocess
import sys

import chess
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from python_games import random_games
from refusals import refusal

import headrace
from headrace.envs.chess.encoding import (
    action_of,
    planes,
)
from headrace.envs.chess.game import Game, read_fen
from headrace.envs.chess.gym import ChessEnv, ChessVsRandomEnv
from headrace.envs.chess.players import Player, greedy_move, random_move


def san_game(*moves: str, fen: str = chess.STARTING_FEN) -> Game:
    game = Game(read_fen(fen))
    for move in moves:
        game.push(game.board.parse_san(move))
    return game


# ---- how games end ----


def test_outcomes_are_python_chess_s() -> None:
    reasons: set[str] = set()
    for game in random_games(150, seed=5):
        board, outcome = game.board, game.outcome()
        assert (game.occurrences(game.recent[0]) >= 3) == board.is_repetition(3)
        assert (game.occurrences(game.recent[0]) >= 2) == board.is_repetition(2)
        expected = board.outcome()
        if expected is None and (board.is_fifty_moves() or board.is_repetition(3)):
            assert outcome is not None
            fifty = outcome.termination is chess.Termination.FIFTY_MOVES
            assert fifty == board.is_fifty_moves()
            assert outcome.winner is None
        else:
            assert outcome == expected
        if outcome:
            reasons.add(outcome.termination.name)
    assert reasons == {
        *("CHECKMATE", "STALEMATE", "INSUFFICIENT_MATERIAL"),
        *("FIFTY_MOVES", "THREEFOLD_REPETITION"),
    }


def test_an_en_passant_square_counts_only_where_the_capture_is_legal() -> None:
    back_and_forth = ("Ng8", "Ng1", "Nf6", "Nf3")
    game = san_game("Nf3", "Nf6", "e4", *back_and_forth, *back_and_forth)
    outcome = game.outcome()
    assert outcome is not None  # nobody could take on e3
    assert outcome.termination is chess.Termination.THREEFOLD_REPETITION
    twice = ("Ke7", "Ke2", "Ke8", "Ke1") * 2
    game = san_game(*twice, fen="4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1")
    assert game.outcome() is None  # dxe3 was possible the first time, and is no more
    assert san_game(*twice, fen="4k3/8/8/8/3pP3/8/8/4K3 b - - 0 1").outcome() is not None


def play(env: gymnasium.Env, *moves: str) -> tuple:
    """Play moves in SAN; returns what the last step gave."""
    result: tuple = ()
    for san in moves:
        board = env.unwrapped.game.board  # pyright: ignore[reportAttributeAccessIssue]
        result = env.step(action_of(board.parse_san(san), board.turn))
    return result


def test_the_mover_who_mates_is_rewarded() -> None:
    env = ChessEnv()
    _, info = env.reset()
    assert info["to_play"] == 0
    for move in ("f3", "e5", "g4"):
        _, reward, terminated, truncated, info = play(env, move)
        assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["to_play"] == 1
    obs, reward, terminated, truncated, info = play(env, "Qh4#")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["to_play"], info["action_mask"].sum()) == (0, 0)
    np.testing.assert_array_equal(obs, planes(env.game))
    assert "ended; reset()" in refusal(lambda: env.step(0))


@pytest.mark.parametrize(
    ("fen", "move"),
    [
        ("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", "Qg6"),
        ("7k/8/8/8/8/8/6p1/6K1 w - - 0 1", "Kxg2"),
        ("7k/8/8/8/8/8/8/R5K1 w - - 99 90", "Ra2"),
    ],
)
def test_draws_are_worth_nothing(fen: str, move: str) -> None:
    env = ChessEnv("compact")
    env.reset(options={"fen": fen})
    _, reward, terminated, truncated, _ = play(env, move)
    assert (reward, terminated, truncated) == (0.0, True, False)


def test_mate_comes_before_the_fiftieth_move() -> None:
    env = ChessEnv()
    env.reset(options={"fen": "7k/R7/8/8/8/8/8/1R4K1 w - - 99 90"})
    assert play(env, "Rb8#")[1:4] == (1.0, True, False)


def test_the_limit_of_plies_truncates() -> None:
    batch = headrace.collect("Chess-v0", rung="python", num_envs=2, steps=20, max_episode_steps=8)
    np.testing.assert_array_equal(np.flatnonzero(batch.truncated[:, 0]), [7, 15])
    assert not batch.terminated.any()
    env = gymnasium.make("headrace/Chess-v0", observation="compact")
    assert env.spec is not None
    assert env.spec.max_episode_steps == 512
    with_limit = gymnasium.make("headrace/Chess-v0", max_episode_steps=4)
    with_limit.reset()
    assert play(with_limit, "e4", "e5", "Nf3")[2:4] == (False, False)
    assert play(with_limit, "Nf6")[2:4] == (False, True)


# ---- what is refused ----


def test_illegal_actions() -> None:
    env = ChessEnv()
    before, _ = env.reset()
    pawn = action_of(chess.Move.from_uci("e2e5"), chess.WHITE)
    message = refusal(lambda: env.step(pawn))
    assert message.startswith(f"action {pawn} is e2e5, which is not legal in rnbqkbnr/")
    assert "leads off the board" in refusal(lambda: env.step(0 + 73 * 7))
    assert "action 4672 leads off" in refusal(lambda: env.step(4672))
    obs, *_ = play(env, "e4")  # nothing had changed
    assert env.game.ply == 1

    env = ChessEnv(illegal="lose")
    before, _ = env.reset()
    obs, reward, terminated, truncated, info = env.step(np.int64(pawn))
    assert (reward, terminated, truncated) == (-1.0, True, False)
    np.testing.assert_array_equal(obs, before)
    assert info["to_play"] == 0
    assert "ended; reset()" in refusal(lambda: env.step(pawn))
    env.reset()
    assert not play(env, "e4")[2]


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("nonsense", "this is no FEN: "),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "no white king, no black king, empty"),
        ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "pawns on backrank"),
        ("4k3/4R3/8/8/8/8/8/4K3 w - - 0 1", "opposite check"),
        ("4k3/8/8/8/8/8/8/4K3 w KQkq - 0 1", "bad castling rights"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "this game has ended already"),
    ],
)
def test_positions_that_cannot_be_played(fen: str, message: str) -> None:
    assert message in refusal(lambda: ChessEnv().reset(options={"fen": fen}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observation": "plans"}, "unknown observation 'plans'; did you mean planes"),
        ({"illegal": "win"}, "unknown value of illegal 'win'; known: error, lose"),
        ({"render_mode": "human"}, "unknown render_mode 'human'; known: ansi"),
    ],
)
def test_options_that_do_not_exist(options: dict, message: str) -> None:
    assert message in refusal(lambda: ChessEnv(**options))


def test_without_python_chess_there_is_a_hint() -> None:
    program = (
        "import sys; sys.modules['chess'] = None; from headrace.cli import main; "
        "sys.exit(main(['play']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    hint = 'headrace: error: chess in Python needs an extra: pip install "headrace[chess]"\n'
    assert done.stderr == hint


# ---- the environments as Gymnasium has them ----


@pytest.mark.parametrize("kind", [ChessEnv, ChessVsRandomEnv])
@pytest.mark.parametrize("observation", ["planes", "compact"])
def test_gymnasiums_own_checks(kind: type[ChessEnv], observation: str) -> None:
    # Its checks draw actions without the mask.
    check_env(kind(observation, illegal="lose", render_mode="ansi"), skip_render_check=True)


def test_a_board_can_be_printed() -> None:
    env = ChessEnv(render_mode="ansi")
    env.reset()
    play(env, "e4")
    assert env.render() == str(env.game.board)
    assert ChessEnv().render() is None


def episode(env: ChessVsRandomEnv, player: Player, seed: int) -> tuple[list[int], float]:
    """One game by a player; its actions and its reward at the end."""
    chance = np.random.default_rng(seed)
    obs, info = env.reset(seed=seed)
    actions, reward, ended = [], 0.0, False
    while not ended and len(actions) < 256:
        move = player(env.game, chance)
        actions.append(action_of(move, env.game.board.turn))
        assert info["action_mask"][actions[-1]] == 1
        assert reward == 0
        obs, reward, ended, truncated, info = env.step(actions[-1])
        assert not truncated
        assert obs.shape == (8, 8, 20)
    return actions, reward


def test_against_chance() -> None:
    env = ChessVsRandomEnv("compact")
    colours, results = [], []
    for seed in range(12):
        actions, result = episode(env, greedy_move, seed)
        assert (actions, result) == episode(env, greedy_move, seed)
        results.append(result)
        env.reset(seed=seed)
        colours.append(env.game.board.turn)
        assert env.game.ply == (0 if colours[-1] == chess.WHITE else 1)
    assert set(colours) == {chess.WHITE, chess.BLACK}
    assert set(results) <= {-1.0, 0.0, 1.0}
    assert results.count(1.0) > results.count(-1.0)


def test_being_mated_costs_the_agent() -> None:
    env = ChessVsRandomEnv()
    rewards = []
    for seed in range(100):
        env.reset(seed=seed, options={"fen": "6k1/8/8/8/8/8/P3r1PP/7K w - - 0 1"})
        obs, reward, terminated, _, info = play(env, "a4")  # Re1 would be mate
        assert terminated == (reward == -1) == env.game.board.is_checkmate()
        assert "to_play" not in info
        np.testing.assert_array_equal(obs, planes(env.game))
        rewards.append(reward)
    assert set(rewards) == {0.0, -1.0}


def test_players() -> None:
    chance = np.random.default_rng(0)
    chosen = {random_move(Game(), chance).uci() for _ in range(400)}
    assert len(chosen) == 20
    for fen, best in (
        ("6k1/5ppp/8/8/8/8/q7/R3R1K1 w - - 0 1", {"e1e8"}),  # mate, not the queen
        ("6k1/8/8/8/8/n7/q7/R3R1K1 w - - 0 1", {"a1a2"}),
        ("6k1/P7/8/8/8/8/1n6/R5K1 w - - 0 1", {"a7a8q"}),
        ("6k1/8/8/3pP3/8/8/8/6K1 w - d6 0 1", {"e5d6"}),
        ("6k1/8/8/3p1p2/4P3/8/8/6K1 w - - 0 1", {"e4d5", "e4f5"}),
    ):
        game = Game(read_fen(fen))
        assert {greedy_move(game, chance).uci() for _ in range(40)} == best
