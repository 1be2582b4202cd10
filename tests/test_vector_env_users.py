# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's wrappers and the loops of well-known learners run on our vector environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics
from states import make

DEFINITIONS = ("native", "array")


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
@pytest.mark.parametrize("definition", DEFINITIONS)
def test_record_episode_statistics(definition: str, mode: str) -> None:
    """CartPole's return is its length, so that what the wrapper counts must agree; and be all."""
    envs = RecordEpisodeStatistics(
        make("CartPole-v1", 16, definition, autoreset=mode), buffer_length=10_000
    )
    envs.reset(seed=0)
    envs.action_space.seed(0)
    ends = 0
    for _ in range(300):
        _, _, terminated, truncated, infos = envs.step(envs.action_space.sample())
        ended = terminated | truncated
        ends += ended.sum()
        assert ("episode" in infos) == ended.any()
        if ended.any():
            np.testing.assert_array_equal(infos["_episode"], ended)
    assert ends == len(envs.return_queue) > 100
    assert list(envs.return_queue) == list(envs.length_queue)
    assert 15 < np.mean(envs.length_queue) < 30  # a random policy falls after about 22 steps


def test_normalize_observation() -> None:
    envs = NormalizeObservation(make("Pendulum-v1", 32, "native"))
    envs.reset(seed=0)
    envs.action_space.seed(0)
    obs = np.stack([envs.step(envs.action_space.sample())[0] for _ in range(400)])
    np.testing.assert_allclose(obs[200:].mean(axis=(0, 1)), 0, atol=0.2)
    np.testing.assert_allclose(obs[200:].std(axis=(0, 1)), 1, atol=0.2)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_a_ppo_collection_loop(name: str) -> None:
    """CleanRL's data collection, line by line, with a linear policy in place of the network."""
    num_envs, num_steps = 8, 128
    envs = RecordEpisodeStatistics(gymnasium.make_vec(f"headrace/{name}", num_envs=num_envs))
    assert envs.single_observation_space.shape is not None
    assert envs.single_action_space.shape is not None
    generator = np.random.default_rng(0)
    obs = np.zeros((num_steps, num_envs, *envs.single_observation_space.shape), np.float32)
    actions = np.zeros((num_steps, num_envs, *envs.single_action_space.shape))
    rewards = np.zeros((num_steps, num_envs))
    dones = np.zeros((num_steps, num_envs))
    next_obs, _ = envs.reset(seed=1)
    next_done = np.zeros(num_envs)
    returns = []
    for _ in range(4):
        for step in range(num_steps):
            obs[step], dones[step] = next_obs, next_done
            if name == "CartPole-v1":
                action = (next_obs[:, 2] + generator.normal(0, 0.1, num_envs) > 0).astype(int)
            else:
                action = generator.normal(0, 1, (num_envs, 1))
            actions[step] = action
            next_obs, reward, terminations, truncations, infos = envs.step(action)
            next_done = np.logical_or(terminations, truncations)
            rewards[step] = reward.reshape(-1)
            if "episode" in infos:
                returns += infos["episode"]["r"][infos["_episode"]].tolist()
        assert np.isfinite(obs).all()
        assert np.isfinite(rewards).all()
    assert len(returns) >= 16
    # In NEXT_STEP mode the step after an end brings no reward: it is the reset.
    assert not rewards[dones.astype(bool)].any()


class StableBaselinesStyle:
    """Stable-Baselines3's VecEnv face: it resets at once, and `infos` have the last observation."""

    def __init__(self, envs: gymnasium.vector.VectorEnv):
        self.envs = envs

    def reset(self) -> np.ndarray:
        return self.envs.reset(seed=0)[0]

    def step_async(self, actions: np.ndarray) -> None:
        self.results = self.envs.step(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        obs, rewards, terminated, truncated, infos = self.results
        out: list[dict] = [{} for _ in range(self.envs.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            out[i]["terminal_observation"] = infos["final_obs"][i]
            out[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return obs, rewards, terminated | truncated, out


def test_a_stable_baselines_loop() -> None:
    """What SB3's `collect_rollouts` does with a VecEnv, its bootstrap at time limits included."""
    env = StableBaselinesStyle(
        gymnasium.make_vec(
            "headrace/CartPole-v1", num_envs=16, autoreset="same_step", max_episode_steps=30
        )
    )
    last_obs = env.reset()
    ends = truncations = 0
    for _ in range(200):
        env.step_async((last_obs[:, 3] + 3 * last_obs[:, 2] > 0).astype(np.int64))
        new_obs, rewards, dones, infos = env.step_wait()
        assert (rewards == 1).all()
        for i, done in enumerate(dones):
            assert done == ("terminal_observation" in infos[i])
            if done:
                ends += 1
                truncations += infos[i]["TimeLimit.truncated"]
                final = infos[i]["terminal_observation"]
                # It follows from the last observation by the rules; the new one is a fresh start.
                np.testing.assert_allclose(final[0], last_obs[i, 0] + 0.02 * last_obs[i, 1], 1e-5)
                assert (abs(new_obs[i]) <= 0.05).all()
        last_obs = new_obs
    assert ends >= truncations > 50
