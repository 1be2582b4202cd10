# SPDX-License-Identifier: Apache-2.0
"""The `python` and `processes` rungs where actions may be illegal and players take turns."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from gym_examples import Nim
from refusals import refusal

import headrace
from headrace import Batch, Collector, Policy, WorkerDiedError
from headrace.collect.gym_envs import env_seed
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import policy_uniforms
from headrace.envs.spec import EnvSpec
from headrace.policy import legal_actions

LAST = ("last_obs", "last_mask", "last_to_play")
COUNTED = ("episode_return", "episode_length", "final_obs", "final_mask", "final_to_play")


def assert_same(one: Batch, other: Batch) -> None:
    for field in dataclasses.fields(Batch):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, dict):
            assert ours.keys() == theirs.keys()
            for name in ours:
                np.testing.assert_array_equal(ours[name], theirs[name])
        elif ours is not None:
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
            assert ours.dtype == theirs.dtype, field.name
        else:
            assert theirs is None


# ---- chess: python-chess and the native core play the same games ----


@pytest.mark.parametrize("observation", ["planes", "compact"])
@pytest.mark.parametrize(
    "others", [("native-fused", {"threads": 2}), ("processes", {"workers": 2})]
)
def test_self_play_is_the_same_bit_for_bit(observation: str, others: tuple[str, dict]) -> None:
    rung, more = others
    kinds = set()
    arguments: dict[str, Any] = {
        **{"num_envs": 6, "steps": 120, "seed": 2**40 + 3, "first_env": 5},
        **{"observation": observation, "max_episode_steps": 300},
    }
    with (
        headrace.make_collector("Chess-v0", rung="python", **arguments) as python,
        headrace.make_collector("Chess-v0", rung=rung, **arguments, **more) as other,
    ):
        for _ in range(8):
            batch = python.collect()
            assert_same(batch, other.collect())
            kinds |= {"terminated"} if batch.terminated.any() else set()
            kinds |= {"truncated"} if batch.truncated.any() else set()
            assert batch.to_play is not None
            assert batch.mask is not None
            assert batch.mask.shape == (120, 6, 584)
    assert kinds == {"terminated", "truncated"}


def test_short_batches_join() -> None:
    arguments: dict[str, Any] = {"num_envs": 3, "seed": 1, "observation": "compact"}
    with headrace.make_collector("Chess-v0", rung="python", steps=7, **arguments) as short:
        parts = [short.collect().copy() for _ in range(40)]
    with headrace.make_collector("Chess-v0", rung="python", steps=280, **arguments) as long:
        whole = long.collect()
    for name in ("obs", "mask", "to_play", "action", "reward", *COUNTED):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    for name in LAST:
        np.testing.assert_array_equal(getattr(parts[-1], name), getattr(whole, name))


def careless(params: Any, obs: Any, mask: Any, key: Any) -> Any:
    """A legal action four times of five, else any of all 4,672."""
    care, choice = policy_uniforms(namespace("numpy"), key, 2)
    rows = np.unpackbits(mask, axis=1, bitorder="little")
    legal = [np.flatnonzero(row) for row in rows]
    chosen = [one[int(share * len(one))] for one, share in zip(legal, choice, strict=True)]
    return np.where(care < 0.8, chosen, (choice * 4672).astype(int)), {}


@pytest.mark.parametrize("rung", ["native", "processes"])
def test_losing_by_illegal_actions(rung: str) -> None:
    arguments: dict[str, Any] = {
        **{"num_envs": 3, "steps": 60, "illegal": "lose", "observation": "compact"},
        "max_episode_steps": 4,
        "policy": Policy(careless, "numpy"),
    }
    with (
        headrace.make_collector("Chess-v0", rung="python", **arguments) as python,
        headrace.make_collector("Chess-v0", rung=rung, **arguments) as other,
    ):
        batch = python.collect()
        assert_same(batch, other.collect())
    assert batch.final_mask is not None
    assert (batch.reward == -1).sum() > 10
    assert (batch.terminated & batch.truncated).any()
    assert batch.final_mask.any(axis=1).all()  # the position in which it was played


def test_an_illegal_action_is_an_error() -> None:
    policy = Policy(lambda _p, obs, _m, _k: (np.full(len(obs), 5), {}), "numpy")
    with headrace.make_collector(
        "Chess-v0", rung="python", num_envs=2, steps=3, policy=policy
    ) as collector:
        message = refusal(lambda: collector.collect())
    assert message.startswith("action 5 ")


def test_against_chance_games_are_like_the_native_ones() -> None:
    """Other random numbers, the same game: lengths and results of many are alike."""
    figures = {}
    for rung in ("python", "native-fused"):
        returns, lengths = headrace.collect(
            "ChessVsRandom-v0", rung=rung, num_envs=40, steps=256, observation="compact"
        ).episodes()
        figures[rung] = np.mean(lengths), np.mean(np.abs(returns))
        assert set(np.unique(returns)) == {-1.0, 0.0, 1.0}
        assert len(returns) > 40
    (length, decided), (native_length, native_decided) = figures.values()
    assert abs(length - native_length) < 25  # of some 130; its standard error is about 8
    assert abs(decided - native_decided) < 0.2


# ---- environments of others ----


@pytest.fixture
def nim(own_environments: None) -> EnvSpec:
    headrace.register("Nim-v0", gym=Nim, max_episode_steps=9)
    return headrace.spec("Nim-v0")


def test_what_the_first_reset_tells(nim: EnvSpec) -> None:
    assert (nim.masked, nim.players, nim.mask_bytes) == (True, 2, 1)
    taxi = headrace.spec("Taxi-v4")
    assert (taxi.masked, taxi.players, taxi.mask_bytes) == (True, 1, 1)
    assert not headrace.spec("Acrobot-v1").masked


def first_legal(params: Any, obs: Any, mask: Any, key: Any) -> Any:
    legal = np.unpackbits(mask, axis=1, bitorder="little")
    return 4 + legal.argmax(axis=1), {"legal": legal.sum(axis=1)}


def collected(
    spec: EnvSpec, policy: Any = "random", params: Any = None, rung: str = "python", **more: Any
) -> list[Batch]:
    collector: Collector
    with headrace.make_collector(
        spec, rung=rung, num_envs=5, steps=11, seed=4, policy=policy, **more
    ) as collector:
        return [collector.collect(params).copy() for _ in range(3)]


def replay(spec: EnvSpec, batches: list[Batch]) -> None:
    """The masks and players in the batches are those that the environments tell."""
    for i in range(batches[0].num_envs):
        env = spec.make_gym()
        obs, info = env.reset(seed=env_seed(4, i))
        length = 0
        for batch in batches:
            assert batch.mask is not None
            assert batch.end_at is not None
            assert batch.final_mask is not None
            for t in range(batch.steps):
                np.testing.assert_array_equal(batch.obs[t, i], obs)
                assert batch.mask[t, i] == np.packbits(info["action_mask"], bitorder="little")
                assert batch.to_play is None or batch.to_play[t, i] == info["to_play"]
                obs, _, terminated, _, info = env.step(batch.action[t, i])
                length += 1
                assert batch.terminated[t, i] == terminated
                limit = length == spec.max_episode_steps
                assert batch.truncated[t, i] == limit
                if terminated or limit:
                    (row,) = np.flatnonzero((batch.end_at == (t, i)).all(axis=1))
                    final = np.packbits(info["action_mask"], bitorder="little")
                    assert batch.final_mask[row] == final
                    if batch.final_to_play is not None:
                        assert batch.final_to_play[row] == info["to_play"]
                    obs, info = env.reset()
                    length = 0
            assert batch.last_mask is not None
            assert batch.last_mask[i] == np.packbits(info["action_mask"], bitorder="little")


def test_masks_and_players_are_the_environments(nim: EnvSpec) -> None:
    batches = collected(nim)
    replay(nim, batches)
    mask = np.concatenate([batch.mask for batch in batches if batch.mask is not None])
    action = np.concatenate([batch.action for batch in batches])
    assert set(np.unique(action)) == {4, 5, 6}
    assert (mask[..., 0] >> (action - 4) & 1).all()
    assert set(np.unique(mask)) == {1, 3, 7}
    taxi = headrace.spec("Taxi-v4")
    replay(taxi, collected(taxi))
    assert any(batch.truncated.any() for batch in batches)
    assert any(batch.terminated.any() for batch in batches)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_whatever_the_workers(nim: EnvSpec, workers: int) -> None:
    cases: list[tuple[Any, Any]] = [
        ("random", None),
        (Policy(first_legal, "numpy"), None),
    ]
    for policy, params in cases:
        ours = collected(nim, policy, params)
        theirs = collected(nim, policy, params, "processes", workers=workers)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)


def choose_by_jax(params: Any, obs: Any, mask: Any, key: Any) -> Any:
    legal = legal_actions(namespace("jax"), mask, 3)
    return 4 + (legal.sum(axis=-1) - 1), {"legal": legal}


def test_a_jax_policy_sees_the_mask(nim: EnvSpec) -> None:
    policy = Policy(choose_by_jax, "jax")
    ours = collected(nim, policy)
    replay(nim, ours)
    for one, other in zip(ours, collected(nim, policy, rung="processes", workers=2), strict=True):
        assert_same(one, other)
        assert one.mask is not None
        legal = np.unpackbits(one.mask, axis=-1, count=3, bitorder="little")
        np.testing.assert_array_equal(one.extras["legal"], legal.astype(bool))


def test_random_legal_actions_are_uniform(nim: EnvSpec) -> None:
    batch = headrace.collect(nim, rung="python", num_envs=16, steps=500)
    assert batch.mask is not None
    for mask, count in ((3, 2), (7, 3)):
        chosen = batch.action[batch.mask[..., 0] == mask] - 4
        counts = np.bincount(chosen, minlength=count)
        assert len(counts) == count
        expected = counts.sum() / count
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.usefixtures("nim")
@pytest.mark.parametrize("rung", ["python", "processes"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "info['action_mask'] has shape () at a reset or step"),
        ({"wrong": "short"}, "info['action_mask'] has shape (2,) at a reset or step"),
    ],
)
def test_a_mask_that_is_not_told(rung: str, options: dict, message: str) -> None:
    spec = headrace.spec("Nim-v0", forget_at=3, **options)
    with headrace.make_collector(spec, rung=rung, num_envs=2, steps=9) as collector:
        error = WorkerDiedError if rung == "processes" else headrace.HeadraceError
        with pytest.raises(error) as caught:
            collector.collect()
    assert message in str(caught.value)
