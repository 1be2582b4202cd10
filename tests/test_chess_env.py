# SPDX-License-Identifier: Apache-2.0
"""The native chess environments: what they show, reward and refuse."""

from typing import Any

import chess
import chess_games
import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace import _native
from headrace.collect.base import HostPolicy, Request
from headrace.envs.chess import Position

ENVS = ("Chess-v0", "ChessVsRandom-v0")
FIELDS = ("obs", "last_obs", "action", "reward", "terminated", "truncated", "end_at", "final_obs")
FIELDS += ("mask", "last_mask", "final_mask", "to_play", "last_to_play", "final_to_play")
FIELDS += ("episode_return", "episode_length")


def assert_same(one: headrace.Batch, other: headrace.Batch) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("form", ["planes", "compact"])
def test_batches_hold_the_games_that_were_played(form: str) -> None:
    """Every observation, mask, turn, reward and end, against python-chess."""
    expected = {"planes": chess_games.expected_planes, "compact": chess_games.expected_compact}
    batch = headrace.collect(
        "Chess-v0", num_envs=3, steps=500, seed=1, observation=form, max_episode_steps=200
    )
    final_at = {tuple(at): row for row, at in enumerate(batch.end_at.tolist())}
    for env in range(batch.num_envs):
        position, board = Position(), chess.Board()
        history = [board.copy()]
        for t in range(batch.steps):
            np.testing.assert_array_equal(batch.obs[t, env], expected[form](history))
            bits = np.unpackbits(batch.mask[t, env], bitorder="little")
            assert np.flatnonzero(bits).tolist() == position.legal_actions
            assert batch.to_play[t, env] == (not board.turn)
            move = position.uci(int(batch.action[t, env]))
            position.play(move)
            board.push_uci(move)
            history = [*history[-7:], board.copy()]
            over = chess_games.expected_outcome(board)
            limit = len(board.move_stack) == 200
            assert batch.terminated[t, env] == (over is not None)
            assert batch.truncated[t, env] == limit
            assert batch.reward[t, env] == (over == "checkmate")
            if over or limit:
                row = final_at.pop((t, env))
                np.testing.assert_array_equal(batch.final_obs[row], expected[form](history))
                final = np.unpackbits(batch.final_mask[row], bitorder="little")
                assert np.flatnonzero(final).tolist() == position.legal_actions
                assert batch.final_to_play[row] == (not board.turn)
                position, board = Position(), chess.Board()
                history = [board.copy()]
    assert not final_at
    assert batch.terminated.any()
    assert batch.truncated.any()


@pytest.mark.parametrize("name", ENVS)
def test_the_same_whatever_the_rung_threads_instructions_and_fusion(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"num_envs": 40, "steps": 96, "seed": 3, "max_episode_steps": 60}
    expected = headrace.collect(name, rung="native", **common)
    assert len(expected.end_at)
    for rung, threads, fused in (("openmp", 2, None), ("native-fused", 2, 7)):
        other = headrace.collect(name, rung=rung, threads=threads, fused_steps=fused, **common)
        assert_same(expected, other)
    for isa in _native.supported_isas():
        monkeypatch.setenv("HEADRACE_ISA", isa)
        assert_same(expected, headrace.collect(name, rung="native-fused", **common))
    dense = headrace.collect(name, rung="native-xla", **common)
    np.testing.assert_array_equal(expected.action, dense.action)
    np.testing.assert_array_equal(expected.last_obs, dense.last_obs)
    np.testing.assert_array_equal(expected.next_obs(), dense.next_obs())
    np.testing.assert_array_equal(expected.next_mask(), dense.next_mask())
    if name == "Chess-v0":
        np.testing.assert_array_equal(expected.next_to_play(), dense.next_to_play())
    other = headrace.collect(name, rung="native", **{**common, "seed": 4})
    assert (other.action != expected.action).mean() > 0.5


@pytest.mark.parametrize("name", ENVS)
def test_the_random_policy_is_the_same_in_numpy(name: str) -> None:
    batch = headrace.collect(name, rung="native", num_envs=9, steps=300, seed=2, first_env=5)
    policy = HostPolicy(Request(headrace.spec(name), 9, 300, seed=2, first_env=5))
    for t in range(batch.steps):
        action, _ = policy.act(None, batch.obs[t], t, batch.mask[t])
        np.testing.assert_array_equal(action, batch.action[t])


def test_random_moves_are_uniform() -> None:
    batch = headrace.collect("Chess-v0", num_envs=20_000, steps=1, observation="compact")
    actions, counts = np.unique(batch.action, return_counts=True)
    assert actions.tolist() == Position().legal_actions
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)


def test_against_random_colours_rewards_and_ends() -> None:
    batch = headrace.collect(
        "ChessVsRandom-v0", num_envs=200, steps=400, seed=5, observation="compact"
    )
    black = batch.obs[:, :, 0, 0, 13].astype(bool)
    assert abs(black[0].mean() - 0.5) < 0.15
    ended = batch.ended
    turned = black[1:] != black[:-1]
    assert not turned[~ended[:-1]].any()  # a colour lasts as long as its episode
    assert turned[ended[:-1]].mean() == pytest.approx(0.5, abs=0.1)
    assert batch.to_play is None
    assert not batch.reward[~batch.terminated].any()
    assert {-1.0, 0.0, 1.0} == set(batch.reward[batch.terminated].tolist())
    mated = batch.reward[tuple(batch.end_at.T)] != 0
    assert not batch.final_mask[mated].any()
    first = batch.obs[0].sum(axis=(1, 2))  # one move has been played where the agent has black
    assert (first[:, :12].sum(axis=1) == 32).all()
    starts = {row.tobytes() for row in batch.obs[0][~black[0]]}
    replies = {row.tobytes() for row in batch.obs[0][black[0]]}
    assert len(starts) == 1
    assert 12 <= len(replies) <= 20


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_an_illegal_action_is_refused_and_changes_nothing(mode: str) -> None:
    envs = headrace.make_vec("Chess-v0", 3, autoreset=mode, observation="compact")
    _, infos = envs.reset(seed=0)
    legal = infos["action_mask"].argmax(axis=1)
    before = envs.state_dict()  # pyright: ignore[reportAttributeAccessIssue]
    wrong = legal.copy()
    wrong[1] = 4000
    assert "actions[1] is 4000" in refusal(lambda: envs.step(wrong))
    wrong[1] = 4672
    assert "Chess-v0 takes 0 to 4671" in refusal(lambda: envs.step(wrong))
    np.testing.assert_equal(envs.state_dict(), before)  # pyright: ignore[reportAttributeAccessIssue]
    envs.step(legal)


def test_an_illegal_action_among_many_steps_is_refused() -> None:
    make = lambda: headrace.make_collector("Chess-v0", rung="native-fused", num_envs=4, steps=20)  # noqa: E731
    played = make().collect().copy()
    collector = make()
    state = collector.state.copy()  # pyright: ignore[reportAttributeAccessIssue]
    wrong = played.action.copy()
    wrong[7, 2] = 4671
    message = refusal(lambda: collector.collect(actions=wrong), ValueError)  # pyright: ignore[reportCallIssue]
    assert message == "actions[7, 2] is 4671, which is illegal now in environment 2 of Chess-v0"
    np.testing.assert_array_equal(collector.state, state)  # pyright: ignore[reportAttributeAccessIssue]


def test_an_illegal_action_inside_xla_is_an_error() -> None:
    import jax.numpy as jnp

    first = headrace.Policy(lambda p, obs, mask, key: (jnp.zeros(obs.shape[0], int), {}), "jax")
    collector = headrace.make_collector("Chess-v0", rung="native-xla", policy=first, num_envs=2)
    with pytest.raises(Exception, match="action 0 is illegal now in environment 0 of Chess-v0"):
        np.asarray(collector.collect().obs)


def test_an_illegal_action_may_lose() -> None:
    envs = headrace.make_vec("Chess-v0", 2, autoreset="same_step", illegal="lose")
    _, infos = envs.reset(seed=0)
    action = infos["action_mask"].argmax(axis=1)
    action[1] = 4000
    obs, reward, terminated, _, infos = envs.step(action)
    assert reward.tolist() == [0, -1]
    assert terminated.tolist() == [False, True]
    assert infos["to_play"].tolist() == [1, 0]
    assert infos["final_info"]["_action_mask"].tolist() == [False, True]
    assert infos["final_info"]["action_mask"].sum(axis=1).tolist() == [0, 20]
    np.testing.assert_array_equal(infos["final_obs"][1], Position().observation())
    np.testing.assert_array_equal(obs[1], Position().observation())


def test_observations_as_floats() -> None:
    common: dict[str, Any] = {"autoreset": "same_step", "max_episode_steps": 3}
    envs = headrace.make_vec("Chess-v0", 2, **common)
    floats = headrace.make_vec("Chess-v0", 2, observation_dtype="float32", **common)
    obs, infos = envs.reset(seed=0)
    as_floats, _ = floats.reset(seed=0)
    for _ in range(7):
        assert as_floats.dtype == np.float32
        assert floats.observation_space.contains(as_floats)
        np.testing.assert_array_equal(obs, as_floats)
        action = infos["action_mask"].argmax(axis=1)
        obs, *_, infos = envs.step(action)
        as_floats, *_, float_infos = floats.step(action)
        if "final_obs" in infos:
            assert float_infos["final_obs"][0].dtype == np.float32
            np.testing.assert_array_equal(infos["final_obs"][0], float_infos["final_obs"][0])


def test_bad_options() -> None:
    make = headrace.make_vec
    assert "observation is 'bits'; it must be 'planes' or 'compact'" in refusal(
        lambda: make("Chess-v0", observation="bits")
    )
    assert "illegal is 1; it must be 'error' or 'lose'" in refusal(
        lambda: make("Chess-v0", illegal=1)
    )
    assert "observation_dtype is 'int8'; Chess-v0 here has uint8 or 'float32'" in refusal(
        lambda: make("Chess-v0", observation_dtype="int8")
    )
