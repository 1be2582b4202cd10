# SPDX-License-Identifier: Apache-2.0
"""Native and array environments against Gymnasium's own, from the same states and actions.

Ours compute in float32, Gymnasium in float64. From the same (float32) state one step may differ by
the rounding of a dozen operations, so that each tolerance stands beside the size of what it rounds:
a result below 2^k is off by at most half a unit in its last place, 2^(k - 25).
"""

import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv, CartPoleVectorEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from states import fields, make, set_fields

from headrace.envs.vector.base import HostVectorEnv

DEFINITIONS = ("native", "array")
MILLION = 1_000_000
CARTPOLE_NOISE = np.array([1.5e-7, 5e-7, 3e-8, 5e-7])
"""Positions below 4 and 0.5, rates below 8, to which 0.02 x an acceleration below 50 is added."""


def step_from(name: str, definition: str, values: np.ndarray, actions: np.ndarray) -> tuple:
    """One step from given states: the next states, and what `step` returned."""
    envs = make(name, values.shape[1], definition, autoreset="disabled", seed=0)
    envs.reset()
    set_fields(name, envs, values)
    results = envs.step(actions)
    return fields(name, envs).astype(np.float64), results


def uniform_states(limits: list[float], count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.stack([generator.uniform(-one, one, count) for one in limits]).astype(np.float32)


def far_from_threshold(states: np.ndarray) -> np.ndarray:
    """How far CartPole states [4, n] are from where the episode ends."""
    return np.minimum(
        np.abs(np.abs(states[0]) - 2.4), np.abs(np.abs(states[2]) - 12 * 2 * np.pi / 360)
    )


# ---- one step, from anywhere ----


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_cartpole_from_a_million_states(definition: str) -> None:
    states = uniform_states([3, 5, 0.3, 5], MILLION, seed=1)
    actions = np.random.default_rng(2).integers(0, 2, MILLION)
    oracle = CartPoleVectorEnv(MILLION)
    oracle.reset(seed=0)
    oracle.state = states.astype(np.float64)
    _, rewards, terminated, _, _ = oracle.step(actions)
    wanted = oracle.state
    assert wanted is not None

    got, (obs, reward, ended, truncated, _) = step_from("CartPole-v1", definition, states, actions)
    assert (np.abs(got - wanted) <= CARTPOLE_NOISE[:, None]).all()
    np.testing.assert_array_equal(obs.T, got.astype(np.float32))
    np.testing.assert_array_equal(reward, rewards)
    assert not truncated.any()
    assert (far_from_threshold(wanted)[ended != terminated] < 1e-5).all()
    assert 0.2 < terminated.mean() < 0.8


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_cartpole_against_the_scalar_class(definition: str) -> None:
    count = 20_000
    states = uniform_states([3, 5, 0.3, 5], count, seed=3)
    actions = np.random.default_rng(4).integers(0, 2, count)
    oracle = CartPoleEnv()
    oracle.reset(seed=0)
    wanted, terminated = np.empty((4, count)), np.empty(count, bool)
    for i in range(count):
        oracle.state = states[:, i].astype(np.float64)
        oracle.steps_beyond_terminated = None
        _, reward, terminated[i], _, _ = oracle.step(int(actions[i]))
        wanted[:, i] = oracle.state
        assert reward == 1

    got, (_, reward, ended, _, _) = step_from("CartPole-v1", definition, states, actions)
    assert (np.abs(got - wanted) <= CARTPOLE_NOISE[:, None]).all()
    assert (reward == 1).all()
    assert (far_from_threshold(wanted)[ended != terminated] < 1e-5).all()


def pendulum(states: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """PendulumEnv.step, literally, over float64 arrays: the next states and the rewards."""
    theta, theta_dot = states.astype(np.float64)
    u = np.clip(torque.astype(np.float64), -2.0, 2.0)
    angle = ((theta + np.pi) % (2 * np.pi)) - np.pi
    costs = angle**2 + 0.1 * theta_dot**2 + 0.001 * (u**2)
    new_dot = theta_dot + (3 * 10.0 / (2 * 1.0) * np.sin(theta) + 3.0 / (1.0 * 1.0**2) * u) * 0.05
    new_dot = np.clip(new_dot, -8, 8)
    return np.stack([theta + new_dot * 0.05, new_dot]), -costs


def pendulum_cases(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles as far as 200 steps at full speed turn (83), and half of them in the first turn."""
    states = uniform_states([83, 8], count, seed)
    states[0, ::2] = uniform_states([np.pi], (count + 1) // 2, seed + 1)[0]
    torque = np.random.default_rng(seed + 2).uniform(-3, 3, count).astype(np.float32)
    return states, torque


def test_the_pendulum_transcription_is_the_scalar_class() -> None:
    states, torque = pendulum_cases(20_000, seed=5)
    wanted, rewards = pendulum(states, torque)
    oracle = PendulumEnv()
    oracle.reset(seed=0)
    for i in range(20_000):
        oracle.state = states[:, i].astype(np.float64)
        _, reward, terminated, truncated, _ = oracle.step(np.float64(torque[i : i + 1]))
        np.testing.assert_allclose(oracle.state, wanted[:, i], rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(reward, rewards[i], rtol=1e-13)
        assert not terminated
        assert not truncated


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_pendulum_from_a_million_states(definition: str) -> None:
    states, torque = pendulum_cases(MILLION, seed=6)
    wanted, rewards = pendulum(states, torque)
    got, (obs, reward, terminated, truncated, _) = step_from(
        "Pendulum-v1", definition, states, torque[:, None]
    )
    ulp = 2.0**-23 * (1 + np.abs(wanted[0]))  # of the angle; wrapping it loses as much
    assert (np.abs(got[0] - wanted[0]) <= ulp).all()
    assert (np.abs(got[1] - wanted[1]) <= 5e-7).all()  # rates up to 8
    # The cost is below 16.3, and changes by at most 2 pi for each radian.
    assert (np.abs(reward - rewards) <= 2 * np.pi * (ulp + 2.0**-22) + 2e-6).all()
    assert (np.abs(obs[:, 0] - np.cos(wanted[0])) <= ulp + 1e-7).all()
    assert (np.abs(obs[:, 1] - np.sin(wanted[0])) <= ulp + 1e-7).all()
    np.testing.assert_array_equal(obs[:, 2], got[1].astype(np.float32))
    assert not terminated.any()
    assert not truncated.any()


def memory_row(envs: HostVectorEnv, count: int) -> np.ndarray:
    """The words [num_envs, count] of Memory-v0."""
    arrays = envs.state_dict()["arrays"]
    if len(arrays) > 1:
        return arrays[0]
    return arrays[0].view(np.uint32)[:, 8 : 8 + count]


@pytest.mark.parametrize("state_bytes", [64, 1024, 4096])
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_memory_is_its_equation(definition: str, state_bytes: int) -> None:
    """Exactly, resets aside, for as long as one likes; in plain Python integers of any size."""
    count, num_envs = state_bytes // 4, 7
    envs = make(
        "Memory-v0", num_envs, definition, state_bytes=state_bytes, autoreset="disabled", seed=1
    )
    envs.reset()
    words = memory_row(envs, count).astype(np.uint64)
    assert len(np.unique(words)) == words.size  # random: no two of a few thousand are the same
    envs.action_space.seed(0)
    ends = 0
    for _ in range(400 if state_bytes == 64 else 40):
        actions = envs.action_space.sample()
        words = (words * 1664525 + 1013904223 + actions[:, None].astype(np.uint64)) % 2**32
        total = words.sum(axis=1) % 2**32
        obs, reward, terminated, _, _ = envs.step(actions)
        np.testing.assert_array_equal(memory_row(envs, count), words)
        for byte in range(4):
            np.testing.assert_array_equal(obs[:, byte], (total >> (8 * byte)) % 256 / 256)
        np.testing.assert_array_equal(reward, (total >> 24) / 256)
        np.testing.assert_array_equal(terminated, total < 2**22)
        ends += terminated.sum()
        if terminated.any():
            envs.reset(options={"reset_mask": terminated})
            words = memory_row(envs, count).astype(np.uint64)
    assert ends > 0 or state_bytes > 64


# ---- whole trajectories, resynchronised at every step ----


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_cartpole_trajectories(definition: str) -> None:
    """3,000 steps of 64 environments, under good policies and bad: every reset, end and limit."""
    num_envs = 64
    envs = make("CartPole-v1", num_envs, definition, seed=0)
    oracle = CartPoleVectorEnv(num_envs)
    obs, _ = envs.reset()
    oracle.reset(seed=0)
    generator = np.random.default_rng(0)
    carelessness = np.linspace(0, 1, num_envs)
    waiting = np.zeros(num_envs, bool)
    lengths, age = [], np.zeros(num_envs, int)
    for _ in range(3000):
        oracle.state = obs.T.astype(np.float64)
        actions = (obs @ np.array([0.1, 0.3, 3, 1]) > 0).astype(int)
        chance = generator.integers(0, 2, num_envs)
        actions = np.where(generator.random(num_envs) < carelessness, chance, actions)
        oracle_obs, oracle_reward, oracle_terminated, oracle_truncated, _ = oracle.step(actions)
        obs, reward, terminated, truncated, _ = envs.step(actions)

        moved = ~waiting  # the others were reset, each with its own random numbers
        assert (np.abs(obs - oracle_obs)[moved] <= 2 * CARTPOLE_NOISE).all()
        assert (np.abs(obs[waiting]) <= 0.05).all()
        np.testing.assert_array_equal(reward, oracle_reward)
        np.testing.assert_array_equal(truncated, oracle_truncated)
        assert (far_from_threshold(obs.T)[terminated != oracle_terminated] < 1e-5).all()
        waiting = terminated | truncated
        oracle.prev_done = waiting.copy()
        age = np.where(moved, age + 1, 0)
        assert (age[truncated] == 500).all()
        lengths += age[waiting].tolist()
    assert lengths.count(500) > 20
    assert sum(length < 100 for length in lengths) > 100


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_pendulum_trajectories(definition: str) -> None:
    """Ten whole episodes of 32 environments; each ends at 200 exactly."""
    envs = make("Pendulum-v1", 32, definition, autoreset="same_step", seed=0)
    envs.reset()
    generator = np.random.default_rng(0)
    for t in range(1, 2001):
        before = fields("Pendulum-v1", envs)
        actions = generator.uniform(-2, 2, (32, 1)).astype(np.float32)
        wanted, rewards = pendulum(before, actions[:, 0])
        obs, reward, terminated, truncated, infos = envs.step(actions)
        final = np.stack(infos["final_obs"].tolist()) if "final_obs" in infos else obs
        ulp = 2.0**-23 * (1 + np.abs(wanted[0]))
        assert (np.abs(final[:, 0] - np.cos(wanted[0])) <= ulp + 1e-7).all()
        assert (np.abs(final[:, 1] - np.sin(wanted[0])) <= ulp + 1e-7).all()
        assert (np.abs(final[:, 2] - wanted[1]) <= 5e-7).all()
        assert (np.abs(reward - rewards) <= 2 * np.pi * (ulp + 2.0**-22) + 2e-6).all()
        assert not terminated.any()
        assert truncated.all() == truncated.any() == (t % 200 == 0)
