# SPDX-License-Identifier: Apache-2.0
"""The `python` rung against Gymnasium's own environments, stepped one by one."""

import sys
from itertools import count
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gym_examples import Counter, Trouble, Walker
from gymnasium.wrappers import TimeLimit
from refusals import refusal

import headrace
from headrace import Batch, HeadraceError, MlpPolicy, Policy
from headrace.collect.gym_envs import env_seed
from headrace.envs.spec import EnvSpec


def replay(spec: EnvSpec, batches: list[Batch], seed: int, first_env: int = 0) -> None:
    """What Gymnasium gives for the same actions is what the batches hold."""
    ends: list[tuple[int, int, Any, float, int]] = []
    steps = batches[0].steps
    for i in range(batches[0].num_envs):
        env = spec.make_gym()
        env = TimeLimit(env, spec.max_episode_steps) if spec.max_episode_steps else env
        obs, _ = env.reset(seed=env_seed(seed, first_env + i))
        total, length = 0.0, 0
        for number, batch in enumerate(batches):
            for t in range(steps):
                np.testing.assert_array_equal(batch.obs[t, i], np.float32(obs))
                obs, reward, terminated, truncated, _ = env.step(batch.action[t, i])
                total, length = total + float(reward), length + 1
                assert batch.reward[t, i] == np.float32(reward)
                assert (batch.terminated[t, i], batch.truncated[t, i]) == (terminated, truncated)
                if terminated or truncated:
                    ends.append((number * steps + t, i, np.array(obs, np.float32), total, length))
                    obs, _ = env.reset()
                    total, length = 0.0, 0
            np.testing.assert_array_equal(batch.last_obs[i], np.float32(obs))
        env.close()
    ends.sort(key=lambda end: end[:2])
    ended_at = [(number * steps + t, i) for number, b in enumerate(batches) for t, i in b.end_at]
    assert ended_at == [end[:2] for end in ends]
    assert ends, "no episode ended: nothing was tested of ends"
    np.testing.assert_array_equal(
        np.concatenate([batch.final_obs for batch in batches]), [end[2] for end in ends]
    )
    returns, lengths = (
        np.concatenate(parts) for parts in zip(*(b.episodes() for b in batches), strict=True)
    )
    np.testing.assert_allclose(returns, [end[3] for end in ends], rtol=1e-6)
    np.testing.assert_array_equal(lengths, [end[4] for end in ends])


def collect(spec: EnvSpec, batches: int = 3, params: Any = None, **arguments: Any) -> list[Batch]:
    with headrace.make_collector(spec, rung="python", **arguments) as collector:
        return [collector.collect(params).copy() for _ in range(batches)]


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize(("name", "limit"), [("CartPole-v1", 14), ("Pendulum-v1", 13)])
@pytest.mark.parametrize("library", ["random", "numpy", "jax"])
def test_transitions_are_gymnasiums(name: str, limit: int, num_envs: int, library: Any) -> None:
    spec = headrace.spec(name, max_episode_steps=limit)
    network = MlpPolicy(spec, (8,))
    params = network.init(1)
    policy = "random" if library == "random" else network.policy(library)
    arguments: dict[str, Any] = {"num_envs": num_envs, "steps": 20, "seed": 5, "first_env": 3}
    batches = collect(spec, params=params, policy=policy, **arguments)
    replay(spec, batches, seed=5, first_env=3)
    assert policy != "random" or not batches[0].extras
    if policy != "random":
        assert batches[0].extras["log_prob"].shape == (20, num_envs)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_random_actions_are_those_of_other_rungs(name: str) -> None:
    spec = headrace.spec(name)
    arguments: dict[str, Any] = {"num_envs": 3, "steps": 7, "seed": 2**40 + 1, "first_env": 9}
    batches = collect(spec, **arguments)
    with headrace.make_collector(spec, rung="numpy", **arguments) as other:
        for batch in batches:
            np.testing.assert_array_equal(batch.action, other.collect().action)


def test_batches_join_whatever_their_length() -> None:
    spec = headrace.spec("CartPole-v1", max_episode_steps=11)
    short = collect(spec, 8, num_envs=2, steps=3, seed=1)
    (long,) = collect(spec, 1, num_envs=2, steps=24, seed=1)
    for name in ("obs", "action", "reward", "terminated", "truncated", "final_obs"):
        joined = np.concatenate([getattr(batch, name) for batch in short])
        np.testing.assert_array_equal(joined, getattr(long, name))


def test_an_environment_is_the_same_wherever_it_stands() -> None:
    spec = headrace.spec("CartPole-v1")
    (whole,) = collect(spec, 1, num_envs=5, steps=40, seed=8)
    (part,) = collect(spec, 1, num_envs=2, steps=40, seed=8, first_env=3)
    np.testing.assert_array_equal(whole.obs[:, 3:], part.obs)


def test_seeds_are_numpys_spawned_children() -> None:
    children = np.random.SeedSequence(2**63 + 5).spawn(4)
    expected = [int(child.generate_state(1)[0]) for child in children]
    assert [env_seed(2**63 + 5, index) for index in range(4)] == expected
    assert len({env_seed(seed, index) for seed in range(30) for index in range(30)}) == 900


@pytest.mark.usefixtures("own_environments")
@pytest.mark.parametrize("library", ["random", "numpy"])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_habits_of_environments(library: str, num_envs: int) -> None:
    """An observation array used again, float64, actions from 4, truncation of its own, numbers."""

    def act(params: Any, obs: Any, mask: Any, key: Any) -> Any:
        return 4 + (key.step + key.who.index) % 3, {}

    policy = "random" if library == "random" else Policy(act, "numpy")
    headrace.register("Counter-v0", gym=Counter, max_episode_steps=6)
    for options in ({"length": 4}, {"cut": 3}, {"length": 6, "cut": 6}, {"length": 99}):
        spec = headrace.spec("Counter-v0", **options)
        batches = collect(spec, num_envs=num_envs, steps=9, policy=policy)
        assert batches[0].obs.dtype == np.float32
        assert set(np.unique(batches[0].action)) == {4, 5, 6}
        replay(spec, batches, seed=0)
    if library == "random":
        headrace.register("Walker-v0", gym=Walker)
        spec = headrace.spec("Walker-v0")
        replay(spec, collect(spec, num_envs=num_envs, steps=9), seed=0)


def test_gymnasiums_own_ids_and_options() -> None:
    spec = headrace.spec("MountainCarContinuous-v0", max_episode_steps=9, goal_velocity=0.01)
    replay(spec, collect(spec, num_envs=2, steps=20), seed=0)


def test_ids_that_need_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = headrace.spec("gymnasium.envs.classic_control:MountainCar-v0")
    assert headrace.spec(spec.id).max_episode_steps == 200  # found again by its name
    assert "nonsuch:MountainCar-v0: No module" in refusal(
        lambda: headrace.spec("nonsuch:MountainCar-v0")
    )
    monkeypatch.setitem(sys.modules, "ale_py", None)
    hint = 'ALE/Pong-v5 needs an extra: pip install "headrace[atari]"'
    assert refusal(lambda: headrace.spec("ALE/Pong-v5")) == hint


def test_atari_is_found_where_it_is_installed() -> None:
    pytest.importorskip("ale_py")
    assert headrace.spec("ALE/Pong-v5").observation_space.shape == (210, 160, 3)


class Watched(Trouble):
    made: ClassVar[list[Any]] = []

    def __init__(self, how: str = "", fail_at: int = -1):
        super().__init__(how)
        self.closed = False
        self.made.append(self)
        if len(self.made) == fail_at:
            raise OSError("no more of these")

    def close(self) -> None:
        self.closed = True


@pytest.mark.usefixtures("own_environments")
@pytest.mark.parametrize("library", ["random", "numpy"])
def test_what_an_environment_raises_comes_through(library: str) -> None:
    headrace.register("Watched-v0", gym=Watched)
    policy = Policy(lambda _p, obs, _m, _k: (np.zeros(len(obs), int), {}), "numpy")
    spec = headrace.spec("Watched-v0", how="raise")
    Watched.made.clear()
    collector = headrace.make_collector(
        spec, rung="python", num_envs=3, steps=8, first_env=10,
        policy="random" if library == "random" else policy,
    )  # fmt: skip
    with pytest.raises(KeyError, match="a bug in the environment") as caught:
        collector.collect()
    assert caught.value.__notes__ == ["(raised by environment 10 of Watched-v0)"]
    assert [env.closed for env in Watched.made] == [True] * 3
    with pytest.raises(HeadraceError, match="closed"):
        collector.collect()
    collector.close()


@pytest.mark.usefixtures("own_environments")
def test_a_constructor_that_raises_leaves_nothing_open() -> None:
    headrace.register("Watched-v0", gym=Watched)
    Watched.made.clear()
    spec = headrace.spec("Watched-v0", fail_at=4)  # the first is made to ask for its spaces
    with pytest.raises(OSError, match="no more"):
        headrace.make_collector(spec, rung="python", num_envs=5, steps=8)
    assert [env.closed for env in Watched.made] == [True] * 3 + [False]


class Liar(Trouble):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        return np.zeros(3, np.float32), {}


class Shifty(Trouble):
    numbers = count()

    def __init__(self) -> None:
        super().__init__()
        if next(self.numbers):
            self.observation_space = gymnasium.spaces.Box(-1, 1, (4,))


class Mapping(Trouble):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Dict({"eye": gymnasium.spaces.Discrete(2)})


@pytest.mark.usefixtures("own_environments")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Liar, r"observation of shape \(3,\); by its space it must be \(2,\)"),
        (Shifty, r"has the observation_space Box.*\(4,\).* it was to have Box.*\(2,\)"),
        (Mapping, "observations of Dict spaces are not supported"),
    ],
)
def test_environments_that_are_not_what_they_say(kind: type, message: str) -> None:
    headrace.register("Odd-v0", gym=kind)
    with pytest.raises(HeadraceError, match=message):
        headrace.make_collector("Odd-v0", rung="python", num_envs=2, steps=8)
