# SPDX-License-Identifier: Apache-2.0
"""What holds for every registered environment, in every definition, mode and size.

An environment joins by being registered; nothing here knows any of them by name.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv

import headrace
from headrace.envs import registry
from headrace.envs.vector.base import HostVectorEnv

MODES = ("next_step", "same_step", "disabled")
SIZES = (1, 3, 8, 17, 1000)
PAIRS = [(entry.id, one) for entry in registry.entries() for one in entry.definitions]
CASES = [
    pytest.param(name, definition, mode, size, id=f"{name}-{definition}-{mode}-{size}")
    for name, definition in PAIRS
    for mode in MODES
    for size in SIZES
    if definition != "gym" or size == 3  # each of these starts processes
]
FEWER = [c for c in CASES if c.values[1] != "gym" or c.values[2] == "next_step"]
IN_ARRAYS = [c for c in CASES if c.values[1] != "gym"]
LIMIT = 9
"""Steps of an episode at most: so that there are ends by the limit in every test."""

every_case = pytest.mark.parametrize(("name", "definition", "mode", "size"), CASES)
most_cases = pytest.mark.parametrize(("name", "definition", "mode", "size"), FEWER)
every_host_case = pytest.mark.parametrize(("name", "definition", "mode", "size"), IN_ARRAYS)


@contextlib.contextmanager
def made(name: str, definition: str, mode: str, size: int, **more: Any) -> Iterator[Any]:
    arguments = {"definition": definition, "autoreset": mode, "max_episode_steps": LIMIT, **more}
    envs = headrace.make_vec(name, size, **arguments)
    try:
        yield envs
    finally:
        envs.close()


class Chooser:
    """Random actions, legal ones by the infos where some are not."""

    def __init__(self, envs: VectorEnv, seed: int = 0):
        self._space = envs.action_space
        self._single = envs.single_action_space
        self._space.seed(seed)
        self._generator = np.random.default_rng(seed)

    def __call__(self, infos: dict[str, Any]) -> np.ndarray:
        if "action_mask" not in infos:
            return self._space.sample()
        mask = infos["action_mask"]
        assert mask.dtype == np.int8
        assert mask.shape == (*self._space.shape, self._single.n)
        return np.argmax(mask * (1 + self._generator.random(mask.shape)), axis=1)


def live(
    envs: VectorEnv, infos: dict[str, Any], steps: int, seed: int = 0, copy: bool = True
) -> list[tuple]:
    """Steps from what the last reset told, and resets where the mode leaves them to the caller."""
    out = []
    choose = Chooser(envs, seed)
    for _ in range(steps):
        *results, infos = envs.step(choose(infos))
        out.append(tuple(part.copy() if copy else part for part in results))
        ended = results[2] | results[3]
        if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            _, infos = envs.reset(options={"reset_mask": ended.copy()})
    return out


def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which environments' observations do."""
    return (one != other).reshape(len(one), -1).any(axis=1)


def assert_equal(ours: list[tuple], theirs: list[tuple]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for mine, yours in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, yours)


@every_case
def test_shapes_dtypes_spaces_and_ends(name: str, definition: str, mode: str, size: int) -> None:
    with made(name, definition, mode, size) as envs:
        assert envs.num_envs == size
        assert envs.metadata["autoreset_mode"] is AutoresetMode[mode.upper()]
        assert envs.observation_space.shape == (size, *(envs.single_observation_space.shape or ()))
        obs, infos = envs.reset(seed=0)
        assert isinstance(infos, dict)
        age, waiting = np.zeros(size, int), np.zeros(size, bool)
        choose = Chooser(envs)
        for _ in range(3 * LIMIT):
            assert envs.observation_space.contains(obs)
            obs, reward, terminated, truncated, infos = envs.step(choose(infos))
            assert obs.dtype == envs.observation_space.dtype
            assert obs.shape == envs.observation_space.shape
            assert reward.shape == terminated.shape == truncated.shape == (size,)
            assert reward.dtype in (np.float32, np.float64)
            assert terminated.dtype == truncated.dtype == np.bool_
            assert np.isfinite(reward).all()
            # The limit, and only the limit, truncates; a reset takes a step only in NEXT_STEP.
            age = np.where(waiting, 0, age + 1)
            np.testing.assert_array_equal(truncated, age == LIMIT)
            assert not (terminated & waiting).any()
            assert not reward[waiting].any()
            ended = terminated | truncated
            waiting = ended if mode == "next_step" else np.zeros(size, bool)
            if mode != "next_step":
                age[ended] = 0
            assert ("final_obs" in infos) == (mode == "same_step" and ended.any())
            if "final_obs" in infos:
                np.testing.assert_array_equal(infos["_final_obs"], ended)
                for final, end, fresh in zip(infos["final_obs"], ended, obs, strict=True):
                    assert (final is not None) == end
                    assert not end or envs.single_observation_space.contains(final)
                    assert not end or not np.array_equal(final, fresh)
            if mode == "disabled" and ended.any():
                before = obs.copy()
                obs, infos = envs.reset(options={"reset_mask": ended})
                np.testing.assert_array_equal(obs[~ended], before[~ended])
                assert differ(obs[ended], before[ended]).all()


@most_cases
def test_seeds(name: str, definition: str, mode: str, size: int) -> None:
    """The same seed gives the same life; others, and neighbours in a batch, others."""
    with (
        made(name, definition, mode, size) as envs,
        made(name, definition, mode, size) as others,
    ):
        first, infos = envs.reset(seed=0)
        again, others_infos = others.reset(seed=0)
        np.testing.assert_array_equal(first, again)
        assert_equal(live(envs, infos, 2 * LIMIT), live(others, others_infos, 2 * LIMIT))
        np.testing.assert_array_equal(others.reset(seed=0)[0], first)
        if beginnings(name, definition) < 500:  # games from one position, or from a few
            return
        # Memory's four bytes of a sum may coincide; a thousand observations must differ in most.
        assert len(np.unique(first, axis=0)) > 0.99 * size
        assert np.mean(differ(others.reset(seed=1)[0], first)) > 0.99


@functools.cache
def beginnings(name: str, definition: str) -> int:
    """How many different first observations 1000 environments have."""
    if definition == "gym":
        definition = next(one for one in ("native", "array", "gym") if (name, one) in PAIRS)
    with made(name, definition, "next_step", 1000) as envs:
        return len(np.unique(envs.reset(seed=5)[0], axis=0))


@most_cases
def test_seeds_of_their_own_know_no_position(
    name: str, definition: str, mode: str, size: int
) -> None:
    with made(name, definition, mode, size) as envs:
        seeds = [(7 * i) % size + 100 for i in range(size)]
        obs = np.array(envs.reset(seed=seeds)[0])
        order = np.random.default_rng(size).permutation(size)
        shuffled, _ = envs.reset(seed=[seeds[i] for i in order])
        np.testing.assert_array_equal(shuffled, obs[order])


@most_cases
def test_results_are_the_callers_unless_views_were_asked_for(
    name: str, definition: str, mode: str, size: int
) -> None:
    with (
        made(name, definition, mode, size) as envs,
        made(name, definition, mode, size, copy=False) as views,
    ):
        kept, infos = envs.reset(seed=0)
        was = kept.copy()
        viewed, views_infos = views.reset(seed=0)
        copies = live(envs, infos, LIMIT, copy=False)
        shown = live(views, views_infos, LIMIT, copy=True)
        assert_equal(copies, shown)  # those kept are as they were when they were shown
        np.testing.assert_array_equal(kept, was)
        _, infos = views.reset(seed=0)
        choose = Chooser(views)
        results = views.step(choose(infos))
        later = results
        if not (results[2] | results[3]).any():
            later = views.step(choose(results[4]))
        assert np.shares_memory(viewed, results[0])
        for one, other in zip(results[:4], later[:4], strict=True):
            assert np.shares_memory(one, other) or definition == "gym"  # observations, like theirs
        for one in copies[0]:
            assert one.flags.writeable


@every_host_case
def test_a_saved_state_has_the_same_future(
    name: str, definition: str, mode: str, size: int
) -> None:
    with (
        made(name, definition, mode, size) as envs,
        made(name, definition, mode, size) as others,
    ):
        assert isinstance(envs, HostVectorEnv)
        assert isinstance(others, HostVectorEnv)
        _, infos = envs.reset(seed=0)
        live(envs, infos, LIMIT + 2)
        others.load_state(envs.state_dict())
        np.testing.assert_equal(others.infos(), envs.infos())
        infos = envs.infos()
        assert_equal(live(others, infos, 2 * LIMIT, seed=1), live(envs, infos, 2 * LIMIT, seed=1))


@pytest.mark.parametrize("name", [entry.id for entry in registry.entries()])
def test_definitions_agree_on_spaces(name: str) -> None:
    spec = headrace.spec(name)
    for definition in spec.definitions:
        env = getattr(spec, f"make_{definition}")()
        assert env.observation_space == spec.observation_space
        assert env.action_space == spec.action_space


@pytest.mark.parametrize(
    "name", [name for name, one in PAIRS if one == "gym" and not headrace.spec(name).masked]
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # it dislikes the spaces of Gymnasium's own
def test_single_environments_pass_gymnasiums_checker(name: str) -> None:
    """The gym definitions; the others are vectors only. It draws actions without a mask."""
    env = gymnasium.make(registry.gymnasium_id(name))
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
