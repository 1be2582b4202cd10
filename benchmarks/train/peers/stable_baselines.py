# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3, or SBX (the same interface in JAX), with rl-zoo's settings for the task.

rl-zoo names nothing beyond the algorithm's defaults for the double pendulum; HalfCheetah's are
the defaults with other batch sizes, and its run measures rates alone.
"""

from __future__ import annotations

import argparse
import importlib
import time
from typing import Any

from race import EPISODES, Race

TASKS = ("ppo-cartpole", "sac-pendulum", "sac-double-pendulum", "sac-cheetah")
WARM_UP = 300
"""Updates before a rate is measured: SBX compiles at the first."""
EVERY = {"ppo-cartpole": 2560, "sac-pendulum": 250, "sac-double-pendulum": 1000}
"""Environment steps between evaluations: the cadence at which each was solved soonest."""


class StableRace(Race):
    """With the choice of the package."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which of the two, and SAC's networks and batches."""
        parser.add_argument("--package", choices=("stable_baselines3", "sbx"), required=True)
        parser.add_argument("--hidden", type=int, nargs="*", help="SAC's networks")
        parser.add_argument("--batch", type=int, default=256, help="SAC's")
        parser.add_argument("--seconds", type=float, default=20.0, help="of measuring a rate")


def build(race: StableRace) -> Any:
    """The model, with the settings that are recommended for its task."""
    from stable_baselines3.common.env_util import (  # pyright: ignore[reportMissingImports]
        make_vec_env,
    )

    package = importlib.import_module(race.arguments.package)
    if race.arguments.task == "ppo-cartpole":
        env = make_vec_env("CartPole-v1", n_envs=8, seed=race.seed)
        return package.PPO(
            "MlpPolicy",
            env,
            n_steps=32,
            batch_size=256,
            gae_lambda=0.8,
            gamma=0.98,
            n_epochs=20,
            ent_coef=0.0,
            learning_rate=lambda left: 1e-3 * left,
            clip_range=lambda left: 0.2 * left,
            seed=race.seed,
            device="cpu",
        )
    settings: dict[str, Any] = {}
    if race.arguments.task == "sac-pendulum":
        settings["learning_rate"] = 1e-3
    if race.arguments.hidden:
        settings["policy_kwargs"] = {"net_arch": race.arguments.hidden}
    if race.arguments.task == "sac-cheetah":
        settings |= {"batch_size": race.arguments.batch, "learning_starts": race.arguments.batch}
    env = make_vec_env(race.task.env, n_envs=1, seed=race.seed)
    return package.SAC("MlpPolicy", env, seed=race.seed, device="cpu", **settings)


def train(race: StableRace) -> None:
    """Until solved, or out of time."""
    from stable_baselines3.common.callbacks import (  # pyright: ignore[reportMissingImports]
        BaseCallback,
    )
    from stable_baselines3.common.env_util import (  # pyright: ignore[reportMissingImports]
        make_vec_env,
    )
    from stable_baselines3.common.evaluation import (  # pyright: ignore[reportMissingImports]
        evaluate_policy,
    )

    every = race.arguments.every or EVERY[race.arguments.task]
    played = make_vec_env(race.task.env, n_envs=EPISODES, seed=race.seed + 1000)

    class Evaluate(BaseCallback):
        stop, due = False, every

        def _on_rollout_start(self) -> None:
            """After an update, that is."""
            if self.num_timesteps < self.due:
                return
            self.due += every
            with race.evaluating():
                score, _ = evaluate_policy(self.model, played, EPISODES, deterministic=True)
            self.stop = race.decided(self.num_timesteps, float(score))

        def _on_step(self) -> bool:
            return not self.stop

    model = build(race)
    race.begin()
    # rl-zoo's 100,000 steps are what PPO's schedules fall over.
    model.learn(10**5 if race.arguments.task == "ppo-cartpole" else 10**7, callback=Evaluate())
    race.report()


def measure(race: StableRace) -> None:
    """Steps and updates a second, once it learns."""
    from stable_baselines3.common.callbacks import (  # pyright: ignore[reportMissingImports]
        BaseCallback,
    )

    batch, seconds = race.arguments.batch, race.arguments.seconds
    warm_up = WARM_UP if batch <= 1024 else 5

    class Measure(BaseCallback):
        begun = 0.0

        def _on_step(self) -> bool:
            if self.num_timesteps < batch + warm_up:
                return True
            if not self.begun:
                self.begun = time.perf_counter()
                race.begin(self.num_timesteps)
            return time.perf_counter() < self.begun + seconds

    model = build(race)
    model.learn(10**7, callback=Measure())
    race.result |= {"batch": batch}
    race.report(model.num_timesteps, frames_per_step=batch)  # an update for each step


def main() -> None:
    """Read the arguments, and race."""
    race = StableRace("stable-baselines3", TASKS, __doc__)
    if race.arguments.package == "sbx":
        race.package = "sbx-rl"
    import torch

    torch.set_num_threads(race.arguments.threads)
    measure(race) if race.arguments.task == "sac-cheetah" else train(race)


if __name__ == "__main__":
    main()
