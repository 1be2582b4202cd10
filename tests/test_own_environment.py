# SPDX-License-Identifier: Apache-2.0
"""An environment that is not ours: registered by a user, or by an installed package."""

import importlib.metadata
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.envs import registry
from headrace.envs.array.base import ArrayEnv


class WalkState(NamedTuple):
    position: Any


class Walk(ArrayEnv[WalkState]):
    """One step left, none, or one right; it ends at either side."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3, start=-1)

    def __init__(self, half_width: int = 4):
        self.half_width = half_width

    def reset(self, ns: Any, draws: Any) -> WalkState:
        return WalkState(draws.uniform(0.0, 1.0) * 0)

    def step(self, ns: Any, state: WalkState, action: Any) -> tuple[WalkState, Any, Any]:
        position = state.position + ns.to_float(action)
        ended = ns.xp.abs(position) >= self.half_width
        return WalkState(position), ns.to_float(ended) * position, ended

    def observe(self, ns: Any, state: WalkState) -> tuple[Any, ...]:
        return (state.position / np.float32(self.half_width),)


def check_walk() -> None:
    """It can do what ours can: by our names and by Gymnasium's, with options, with a limit."""
    for envs in (
        headrace.make_vec("Walk-v0", 2, half_width=2, seed=0),
        gymnasium.make_vec("headrace/Walk-v0", num_envs=2, half_width=2),
    ):
        assert envs.reset()[0].tolist() == [[0], [0]]
        assert envs.step([-1, 1])[0].tolist() == [[-0.5], [0.5]]
        obs, reward, terminated, truncated, _ = envs.step([-1, -1])
        assert obs.tolist() == [[-1], [0]]
        assert reward.tolist() == [-2, 0]
        assert terminated.tolist() == [True, False]
        assert not truncated.any()
        assert "takes -1 to 1" in refusal(lambda envs=envs: envs.step([2, 0]))
    batch = headrace.collect("Walk-v0", rung="numpy", num_envs=50, steps=100)
    assert set(np.unique(batch.action)) == {-1, 0, 1}
    assert batch.terminated.any()
    assert batch.episode_length.max() == 20
    assert "native" in refusal(lambda: headrace.make_collector("Walk-v0", rung="native"))
    assert "did you mean Walk-v0" in refusal(lambda: headrace.spec("Walk-v9"))


@pytest.mark.usefixtures("own_environments")
def test_registering_an_environment() -> None:
    headrace.register("Walk-v0", array=Walk, max_episode_steps=20)
    check_walk()
    headrace.register("somebody/Walk-v1", array=Walk)
    assert headrace.make_vec("somebody/Walk-v1", 3).num_envs == 3
    assert gymnasium.make_vec("headrace/somebody.Walk-v1", num_envs=3).num_envs == 3


@pytest.mark.usefixtures("own_environments")
def test_an_installed_package_adds_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point, found when first needed: nobody imports the package."""

    def add() -> None:
        headrace.register("Walk-v0", array=f"{__name__}:Walk", max_episode_steps=20)

    asked = []

    def entry_points(*, group: str) -> list[SimpleNamespace]:
        asked.append(group)
        return [SimpleNamespace(name="walk", value="walk:add", load=lambda: add)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_plugins_loaded", False)
    assert "Walk-v0" in [entry.id for entry in registry.entries()]
    check_walk()
    assert asked == ["headrace.environments"]


@pytest.mark.usefixtures("own_environments")
def test_a_broken_package_does_not_break_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> None:
        raise ImportError("no module named 'moon'")

    broken = SimpleNamespace(name="moon", value="moon:add", load=load)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [broken])
    monkeypatch.setattr(registry, "_plugins_loaded", False)
    with pytest.warns(UserWarning, match=r"environments of 'moon' \(moon:add\) .* 'moon'"):
        assert headrace.spec("CartPole-v1").id == "CartPole-v1"
