# SPDX-License-Identifier: Apache-2.0
"""The vector interface behaves as Gymnasium's own, and under Gymnasium's own tools."""

import pickle
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import headrace
from headrace import HeadraceError
from headrace.envs.vector.base import HostVectorEnv

IDS = ("CartPole-v1", "Pendulum-v1", "Memory-v0")
DEFINITIONS = ("native", "array")
MODES = ("next_step", "same_step", "disabled")
LIMITS = {"CartPole-v1": 12, "Pendulum-v1": 7, "Memory-v0": 5}


def make(name: str, num_envs: int, **arguments: Any) -> HostVectorEnv:
    envs = headrace.make_vec(name, num_envs, **arguments)
    assert isinstance(envs, HostVectorEnv)
    return envs


class Single(gymnasium.Env):
    """One of our environments as a plain Gymnasium one, so that Gymnasium itself vectorises it."""

    def __init__(self, name: str, definition: str):
        limit = LIMITS[name]
        self.envs = make(
            name, 1, definition=definition, autoreset="disabled", max_episode_steps=limit
        )
        self.observation_space = self.envs.single_observation_space
        self.action_space = self.envs.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        obs, infos = self.envs.reset(seed=None if seed is None else [seed])
        return obs[0], infos

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        obs, reward, terminated, truncated, infos = self.envs.step(np.asarray(action)[None])
        return obs[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), infos


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal, whatever they are made of: tuples, dicts, object arrays, arrays."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, tuple | list):
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, np.ndarray) and theirs.dtype.hasobject:
        assert ours.dtype.hasobject
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif theirs is None:
        assert ours is None
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("name", IDS)
def test_every_mode_is_gymnasiums(name: str, definition: str, mode: str) -> None:
    """SyncVectorEnv over single environments of ours, and our batch: the same in every respect."""
    seeds: list[int | None] = [7, 0, 2**64 - 1, 7, 31]
    theirs = SyncVectorEnv(
        [lambda: Single(name, definition)] * 5, autoreset_mode=AutoresetMode[mode.upper()]
    )
    ours = make(name, 5, definition=definition, autoreset=mode, max_episode_steps=LIMITS[name])
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"]

    # Only 32-bit seeds are Gymnasium's own business; what it hands on may be longer.
    assert_same(ours.reset(seed=seeds), theirs.reset(seed=[7, 0, 2**64 - 1, 7, 31]))
    ours.action_space.seed(3)
    ends = 0
    for t in range(60):
        actions = ours.action_space.sample()
        mine = ours.step(actions)
        assert_same(mine, theirs.step(actions))
        ended = mine[2] | mine[3]
        ends += ended.sum()
        must = mode == "disabled" and bool(ended.any())
        if must or t in (20, 40):
            mask = ended if must else np.arange(5) == t % 5
            reseed: list[int | None] = [None, None, 5, None, 6]
            seed = reseed if t > 30 else None
            assert_same(
                ours.reset(seed=seed, options={"reset_mask": mask}),
                theirs.reset(seed=seed, options={"reset_mask": mask}),
            )
    assert ends > 10


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("name", IDS)
def test_a_seed_numbers_the_environments(name: str, definition: str) -> None:
    eight = make(name, 8, definition=definition)
    two = make(name, 2, definition=definition, first_env=3)
    obs, _ = eight.reset(seed=11)
    np.testing.assert_array_equal(two.reset(seed=11)[0], obs[3:5])
    np.testing.assert_array_equal(make(name, 8, definition=definition, seed=11).reset()[0], obs)
    # What a list says of environment 0 is what a single seed says of it.
    np.testing.assert_array_equal(
        make(name, 3, definition=definition).reset(seed=[4, 11, 11])[0][1:], obs[[0, 0]]
    )


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_without_a_seed_there_is_fresh_entropy_once(definition: str) -> None:
    one, other = (make("Pendulum-v1", 4, definition=definition) for _ in range(2))
    first, _ = one.reset()
    assert not np.array_equal(first, other.reset()[0])
    state = one.state_dict()
    second, _ = one.reset()
    assert not np.array_equal(first, second)
    one.load_state(state)
    np.testing.assert_array_equal(one.reset()[0], second)  # a stream that goes on, not chance


def test_definitions_start_alike() -> None:
    for name in IDS:
        starts = [make(name, 9, definition=one).reset(seed=1)[0] for one in DEFINITIONS]
        np.testing.assert_allclose(starts[0], starts[1], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "mode"),
    [("next_step", "NEXT_STEP"), ("SameStep", "SAME_STEP"), (AutoresetMode.DISABLED, "DISABLED")],
)
@pytest.mark.parametrize("name", IDS)
def test_through_gymnasiums_make_vec(name: str, given: Any, mode: str) -> None:
    envs = gymnasium.make_vec(f"headrace/{name}", num_envs=8, autoreset=given, threads=1)
    assert envs.metadata["autoreset_mode"] is AutoresetMode[mode]
    assert repr(envs) == f"NativeVectorEnv(headrace/{name}, num_envs=8)"
    obs, _ = envs.reset(seed=0)
    assert envs.spec is not None
    again = gymnasium.make_vec(envs.spec)
    assert again.metadata["autoreset_mode"] is AutoresetMode[mode]
    np.testing.assert_array_equal(again.reset(seed=0)[0], obs)
    assert again.spec == envs.spec


def test_a_spec_makes_the_same_environments_again() -> None:
    envs = headrace.make_vec(
        "Memory-v0", 3, definition="array", copy=False, max_episode_steps=2, state_bytes=64, seed=5
    )
    assert envs.spec is not None
    again = gymnasium.make_vec(envs.spec)
    assert repr(again) == repr(envs) == "ArrayVectorEnv(headrace/Memory-v0, num_envs=3)"
    assert_same(again.reset(), envs.reset())
    for _ in range(3):
        assert_same(again.step([0, 1, 2]), envs.step([0, 1, 2]))
    assert envs.spec.to_json()


def test_gymnasiums_make_gives_its_own_environment() -> None:
    env = gymnasium.make("headrace/CartPole-v1")
    assert type(env.unwrapped).__name__ == "CartPoleEnv"
    assert env.spec is not None
    assert env.spec.max_episode_steps == 500
    env.close()
    with pytest.raises(gymnasium.error.Error, match="entry_point"):
        gymnasium.make("headrace/Memory-v0")


def test_the_registered_limit_holds_through_gymnasium_too() -> None:
    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, 200), ({"max_episode_steps": 3}, 3))
    for arguments, limit in cases:
        envs = gymnasium.make_vec("headrace/Pendulum-v1", num_envs=2, **arguments)
        envs.reset(seed=0)
        for t in range(1, limit + 1):
            truncated = envs.step(np.zeros((2, 1), np.float32))[3]
            assert truncated.all() == truncated.any() == (t == limit)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("name", IDS)
def test_a_state_is_all_there_is(name: str, definition: str, mode: str) -> None:
    """Saved, pickled, and loaded into other environments, it has the same future, ends and all."""

    def live(envs: HostVectorEnv, seed: int) -> list[Any]:
        generator = np.random.default_rng(seed)
        out = []
        for _ in range(40):
            if isinstance(envs.single_action_space, gymnasium.spaces.Discrete):
                actions = generator.integers(0, envs.single_action_space.n, 6)
            else:
                actions = generator.uniform(-2, 2, (6, 1))
            out.append(envs.step(actions))
            ended = out[-1][2] | out[-1][3]
            if mode == "disabled" and ended.any():
                out.append(envs.reset(options={"reset_mask": ended}))
        return out

    arguments: dict[str, Any] = {
        "definition": definition,
        "autoreset": mode,
        "max_episode_steps": LIMITS[name],
    }
    envs = make(name, 6, **arguments)
    envs.reset(seed=3)
    live(envs, 0)
    # The state between an end and the reset that follows it must survive too.
    waits = mode != "same_step"
    last = envs.step(envs.action_space.sample())
    while waits and not (last[2] | last[3]).any():
        last = envs.step(envs.action_space.sample())
    saved = pickle.loads(pickle.dumps(envs.state_dict()))
    other = make(name, 6, **arguments)
    np.testing.assert_array_equal(other.load_state(saved), last[0])
    assert other.clock == envs.clock
    if mode == "disabled":
        for one in (envs, other):
            with pytest.raises(HeadraceError, match="have ended"):
                one.step(one.action_space.sample())
            one.reset(options={"reset_mask": last[2] | last[3]})
    assert_same([*live(other, 1)], [*live(envs, 1)])


def test_states_of_another_kind_are_refused() -> None:
    envs = make("CartPole-v1", 4)
    envs.reset(seed=0)
    saved = envs.state_dict()
    for other, match in (
        (
            make("CartPole-v1", 4, definition="array"),
            "tag CartPole-v1/lanes/1; .* /?CartPole-v1/array",
        ),
        (make("Pendulum-v1", 4), "tag"),
        (make("CartPole-v1", 5), "shapes"),
        (make("CartPole-v1", 4, autoreset="same_step"), "autoreset mode next_step"),
    ):
        with pytest.raises(HeadraceError, match=match.replace(" /?", " ")):
            other.load_state(saved)
    for bad in ({}, None, {"tag": 1}, saved | {"arrays": 3}):
        with pytest.raises(HeadraceError, match="no state"):
            envs.load_state(bad)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_closing(definition: str) -> None:
    with make("CartPole-v1", 2, definition=definition) as envs:
        envs.reset(seed=0)
        envs.step([0, 1])
    assert envs.closed
    envs.close()  # once more does no harm
    for use in (envs.reset, lambda: envs.step([0, 1]), envs.state_dict):
        with pytest.raises(HeadraceError, match="closed"):
            use()
    with pytest.raises(HeadraceError, match="reset"):
        make("CartPole-v1", 2, definition=definition).step([0, 1])
    with pytest.raises(HeadraceError, match="gym"):
        make("CartPole-v1", 2, definition=definition).render()


def test_importing_is_light() -> None:
    """Beyond what Gymnasium loads: our own few modules, and nothing of weight."""
    code = (
        "import sys, gymnasium; before = set(sys.modules); import headrace; "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added = {name.partition(".")[0] for name in out.stdout.split()}
    assert added <= {"headrace", "importlib"}
    assert "headrace._native" not in out.stdout.split()


def test_the_name_is_the_function() -> None:
    """A module of the same name must not get in its place."""
    import headrace.make_vec

    assert callable(headrace.make_vec)
