# SPDX-License-Identifier: Apache-2.0
"""RLlib, with the settings of its tuned examples: PPO on CartPole, and SAC's rates on HalfCheetah.

Ray's processes are started by us, and count. The newest module is played here, after an iteration.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from race import EPISODES, Race

LEARNING_STARTS = 1000
"""Its example says 10,000 for SAC: more of the same steps before there is a rate to measure."""
WARM_UP = 1200
"""Steps before SAC's rates are measured."""


class RllibRace(Race):
    """With the choice of processes."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """How SAC samples, and how much it learns from."""
        parser.add_argument("--runners", type=int, default=2, help="SAC's sampling processes")
        parser.add_argument("--envs", type=int, default=1, help="environments of each")
        parser.add_argument("--batch", type=int, default=256, help="SAC's")
        parser.add_argument("--seconds", type=float, default=20.0, help="of measuring a rate")


def ppo(race: RllibRace) -> Any:
    """tuned_examples/ppo/cartpole_ppo.py."""
    from ray.rllib.algorithms.ppo import PPOConfig  # pyright: ignore[reportMissingImports]
    from ray.rllib.core.rl_module.default_model_config import (  # pyright: ignore[reportMissingImports]
        DefaultModelConfig,
    )

    return (
        PPOConfig()
        .environment("CartPole-v1")
        .debugging(seed=race.seed)
        .training(gamma=0.99, lr=0.0003, num_epochs=6, vf_loss_coeff=0.01, use_kl_loss=True)
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True
            )
        )
    )


def sac(race: RllibRace) -> Any:
    """tuned_examples/sac/halfcheetah_sac.py."""
    from ray.rllib.algorithms.sac import SACConfig  # pyright: ignore[reportMissingImports]
    from ray.rllib.core.rl_module.default_model_config import (  # pyright: ignore[reportMissingImports]
        DefaultModelConfig,
    )

    return (
        SACConfig()
        .environment("HalfCheetah-v5")
        .debugging(seed=race.seed)
        .env_runners(
            num_env_runners=race.arguments.runners, num_envs_per_env_runner=race.arguments.envs
        )
        .training(
            initial_alpha=1.001,
            actor_lr=0.0003,
            critic_lr=0.0003,
            alpha_lr=0.0003,
            target_entropy="auto",
            n_step=1,
            tau=0.005,
            train_batch_size_per_learner=race.arguments.batch,
            target_network_update_freq=1,
            replay_buffer_config={
                "type": "PrioritizedEpisodeReplayBuffer",
                "capacity": 100_000,
                "alpha": 0.6,
                "beta": 0.4,
            },
            num_steps_sampled_before_learning_starts=LEARNING_STARTS,
        )
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[256, 256], fcnet_activation="relu", head_fcnet_hiddens=[]
            )
        )
    )


def evaluate(algo: Any, seed: int) -> float:
    """The first episodes of Gymnasium's class, by the most likely actions."""
    import gymnasium
    import numpy as np
    import torch

    module = algo.get_module()
    envs = [gymnasium.make("CartPole-v1") for _ in range(EPISODES)]
    obs = np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(envs)])
    returns, alive = np.zeros(EPISODES), np.ones(EPISODES, bool)
    with torch.no_grad():
        while alive.any():
            out = module.forward_inference({"obs": torch.as_tensor(obs)})
            actions = out["action_dist_inputs"].argmax(1).numpy()
            for i in np.flatnonzero(alive):
                obs[i], _, terminated, truncated, _ = envs[i].step(int(actions[i]))
                returns[i] += 1
                alive[i] = not (terminated or truncated)
    return float(returns.mean())


def train(race: RllibRace) -> None:
    """Until solved, or out of time."""
    algo = ppo(race).build_algo()
    race.begin()
    over = False
    while not over:
        result = algo.train()
        with race.evaluating():
            score = evaluate(algo, race.seed + 1000)
        over = race.decided(int(result["num_env_steps_sampled_lifetime"]), score)
    race.report()
    algo.stop()


def measure(race: RllibRace) -> None:
    """SAC's steps, updates and update frames a second, once it learns."""
    algo = sac(race).build_algo()

    def counts() -> tuple[int, int]:
        result = algo.train()
        learnt = result.get("learners", {}).get("__all_modules__", {})
        trained = learnt.get("num_env_steps_trained_lifetime", 0)
        return int(result["num_env_steps_sampled_lifetime"]), int(trained)

    while counts()[0] < WARM_UP and not race.late:
        pass
    steps, trained = counts()
    race.begin(steps)
    begun = time.perf_counter()
    now, frames = counts()
    while (elapsed := time.perf_counter() - begun) < race.arguments.seconds:
        now, frames = counts()
    race.result |= {"batch": race.arguments.batch, "frames_rate": (frames - trained) / elapsed}
    race.report(now)
    algo.stop()


def main() -> None:
    """Read the arguments, and race."""
    race = RllibRace("ray", ("ppo-cartpole", "sac-cheetah"), __doc__)
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    # The learner's; beside its own sampling processes more of them wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(race.arguments.threads))
    import ray  # pyright: ignore[reportMissingImports]
    import torch

    torch.set_num_threads(race.arguments.threads)

    ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    measure(race) if race.arguments.task == "sac-cheetah" else train(race)
    ray.shutdown()


if __name__ == "__main__":
    main()
