# SPDX-License-Identifier: Apache-2.0
"""Environments given by where they are, or as a callable; wrappers; other people's packages."""

import gymnasium
import numpy as np
import pytest

import headrace
from headrace.envs import registry
from headrace.errors import HeadraceError


class Doubled(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, space.shape, np.float32)

    def observation(self, observation):
        return 2 * observation


def test_by_module_and_class():
    name = "gymnasium.envs.classic_control.cartpole:CartPoleEnv"
    spec = registry.spec(name, max_episode_steps=20)
    assert spec.id == name
    assert spec.definitions == ("gym",)
    assert headrace.collect(spec, rung="python", num_envs=2, steps=5).reward.shape == (5, 2)


def test_a_callable(own_environments):
    def make(**options):
        return gymnasium.make("CartPole-v1", **options).unwrapped

    spec = registry.spec(make)
    assert headrace.collect(spec, rung="python", num_envs=1, steps=3).reward.shape == (3, 1)
    assert registry.spec(spec.id).id == spec.id


def test_wrappers():
    plain = registry.spec("CartPole-v1")
    wrapped = registry.spec("CartPole-v1", wrappers=f"{__name__}:Doubled")
    assert wrapped.definitions == ("gym",)
    assert wrapped.max_episode_steps == 500
    twice, once = (
        headrace.collect(spec, rung="python", num_envs=2, steps=1) for spec in (wrapped, plain)
    )
    np.testing.assert_allclose(twice.obs, 2 * once.obs, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:Env", "no_such_module"),
        ("gymnasium.envs.classic_control.cartpole:CartPolEnv", "did you mean CartPoleEnv"),
    ],
)
def test_what_is_not_there_is_named(name, says):
    with pytest.raises(HeadraceError, match=says):
        registry.spec(name)


def test_a_wrapper_that_is_not_there_is_named():
    with pytest.raises(HeadraceError, match=r"wrapper headrace\.envs:Nothing"):
        registry.spec("CartPole-v1", wrappers="headrace.envs:Nothing")


def test_atari():
    pytest.importorskip("ale_py")
    spec = registry.spec("ALE/Pong-v5", obs_type="grayscale", frameskip=4)
    assert spec.observation_space.dtype == np.uint8
    assert headrace.collect(spec, rung="python", num_envs=1, steps=2).obs.dtype == np.uint8


def test_mujoco():
    pytest.importorskip("mujoco")
    spec = registry.spec("HalfCheetah-v5")
    assert headrace.collect(spec, rung="python", num_envs=1, steps=2).obs.dtype == np.float32
