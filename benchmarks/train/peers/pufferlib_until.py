# SPDX-License-Identifier: Apache-2.0
"""PufferLib's own training loop on its C CartPole.

Its recommended settings (config/ocean/cartpole.ini: 4096 environments, 64 steps, a recurrent
policy, 20 million steps) are made for throughput on a GPU. Beside them stand two that we looked for
on its behalf: with "soon" its loop solves CartPole soonest on a CPU, "fast" has the highest rate of
those that solve it at all.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from typing import Any

from race import EPISODES, Race

SETTINGS: dict[str, dict[str, float]] = {
    "ini": {},
    "soon": {
        "envs": 64,
        "total_timesteps": 300_000,
        "bptt_horizon": 32,
        "minibatch_size": 512,
        "learning_rate": 0.01,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "update_epochs": 4,
    },
    "fast": {
        "envs": 1024,
        "minibatch_size": 8192,
        "learning_rate": 0.015,
        "gamma": 0.98,
    },
}
EVERY = {"ini": 1, "soon": 8192, "fast": 131_072}
"""Environment steps between evaluations."""


class PufferRace(Race):
    """With the choice of settings."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Any of its settings can be given."""
        parser.add_argument("--settings", choices=SETTINGS, default="ini")
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")


def build(race: PufferRace, folder: str) -> Any:
    """Its trainer, by the pieces that its `train` is made of."""
    import pufferlib.vector  # pyright: ignore[reportMissingImports]
    from pufferlib import pufferl  # pyright: ignore[reportMissingImports]
    from pufferlib.ocean.cartpole.cartpole import (  # pyright: ignore[reportMissingImports]
        Cartpole,
    )

    settings = pufferl.load_config("puffer_cartpole")
    given = {"envs": settings["env"]["num_envs"]} | SETTINGS[race.arguments.settings]
    given |= {name: float(value) for name, value in (s.split("=") for s in race.arguments.set)}
    num_envs = int(given.pop("envs"))
    if race.arguments.settings != "ini":
        settings["rnn_name"] = None
    config = settings["train"]
    config |= {"seed": race.seed, "device": "cpu", "data_dir": folder}
    for name, value in given.items():
        config[name] = type(config[name])(value)
    config |= {"use_rnn": settings["rnn_name"] is not None, "env": "puffer_cartpole"}
    race.result["settings"] = {"envs": num_envs, **given, "recurrent": config["use_rnn"]}
    vecenv = pufferlib.vector.make(
        Cartpole,
        backend=pufferlib.PufferEnv,
        num_envs=1,
        env_kwargs={"num_envs": num_envs, "report_interval": 128},
        seed=race.seed,
    )
    vecenv.agents_per_batch = num_envs  # for the recurrent policy; its bare environments lack it
    policy = pufferl.load_policy(settings, vecenv)
    trainer = pufferl.PuffeRL(config, vecenv, policy)
    trainer.print_dashboard = lambda *_, **__: None
    return trainer


def evaluate(trainer: Any, seed: int) -> float:
    """The first episodes of its own environments, by the most likely actions."""
    import numpy as np
    import torch
    from pufferlib.ocean.cartpole.cartpole import (  # pyright: ignore[reportMissingImports]
        Cartpole,
    )

    env = Cartpole(num_envs=EPISODES, report_interval=1 << 30)
    obs, _ = env.reset(seed)
    returns, alive = np.zeros(EPISODES), np.ones(EPISODES, bool)
    state = {"lstm_h": None, "lstm_c": None}
    if trainer.config["use_rnn"]:
        width = trainer.uncompiled_policy.hidden_size
        state = {name: torch.zeros(EPISODES, width) for name in state}
    with torch.no_grad():
        for _ in range(500):  # it marks the time limit nowhere
            logits, _ = trainer.uncompiled_policy.forward_eval(torch.as_tensor(obs), state)
            obs, _, terminal, _, _ = env.step(logits.argmax(1).numpy())
            returns += alive
            alive &= ~terminal.astype(bool)
    env.close()
    return float(returns.mean())


def main() -> None:
    """Read the arguments, and race."""
    race = PufferRace("pufferlib", ("ppo-cartpole",), __doc__)
    import torch

    torch.set_num_threads(race.arguments.threads)
    torch.manual_seed(race.seed)
    folder = tempfile.mkdtemp(prefix="pufferlib-")
    try:
        trainer = build(race, folder)
        race.begin()
        due = every = race.arguments.every or EVERY[race.arguments.settings]
        over = False
        while not over:
            trainer.evaluate()  # its word for collecting
            trainer.train()
            if trainer.global_step >= due:
                due += every
                with race.evaluating():
                    score = evaluate(trainer, race.seed + 1000)
                over = race.decided(trainer.global_step, score)
            over = over or race.late or trainer.epoch >= trainer.total_epochs

        def learn_on() -> int:
            before = trainer.global_step
            trainer.evaluate()
            trainer.train()
            return trainer.global_step - before

        race.learn_on(learn_on)
        race.report(trainer.global_step)
        trainer.utilization.stop()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
