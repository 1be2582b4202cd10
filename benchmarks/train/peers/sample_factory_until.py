# SPDX-License-Identifier: Apache-2.0
"""Sample Factory's asynchronous PPO on Gymnasium's CartPole, by its own example's command line.

It has no evaluation while it trains. So the runner's process plays the newest weights, which the
learner shares, every second; sampling and learning go on meanwhile.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from typing import Any

from race import EPISODES, Race

EXAMPLE = (
    "--env=CartPole-v1 --algo=APPO --use_rnn=False --num_envs_per_worker=20 --recurrence=1 "
    "--policy_workers_per_policy=2 --with_vtrace=False --batch_size=512 --reward_scale=0.1 "
    "--save_every_sec=10 --experiment_summaries_interval=10"
)
"""What sf_examples/train_gym_env.py recommends for it."""
EVERY = 1.0
"""Seconds between evaluations."""


def make_env(name: str, *_: Any, render_mode: str | None = None, **__: Any) -> Any:
    """As it wants environments to be made."""
    import gymnasium

    return gymnasium.make(name, render_mode=render_mode)


def evaluate(client: Any, seed: int) -> float:
    """The first episodes, by the most likely actions."""
    import gymnasium
    import numpy as np
    import torch
    from sample_factory.algo.utils.action_distributions import (  # pyright: ignore[reportMissingImports]
        argmax_actions,
    )
    from sample_factory.algo.utils.rl_utils import (  # pyright: ignore[reportMissingImports]
        prepare_and_normalize_obs,
    )

    client.ensure_weights_updated()
    model = client.actor_critic
    envs = [gymnasium.make("CartPole-v1") for _ in range(EPISODES)]
    obs = np.stack([env.reset(seed=seed + i)[0] for i, env in enumerate(envs)])
    states = torch.zeros(EPISODES, 1)
    returns, alive = np.zeros(EPISODES), np.ones(EPISODES, bool)
    with torch.no_grad():
        while alive.any():
            seen = prepare_and_normalize_obs(model, {"obs": torch.as_tensor(obs)})
            model(seen, states)
            actions = argmax_actions(model.action_distribution()).flatten().numpy()
            for i in np.flatnonzero(alive):
                obs[i], _, terminated, truncated, _ = envs[i].step(int(actions[i]))
                returns[i] += 1
                alive[i] = not (terminated or truncated)
    return float(returns.mean())


def build(race: Race, folder: str) -> Any:
    """Its runner, with an observer that evaluates."""
    from sample_factory.algo.runners.runner import (  # pyright: ignore[reportMissingImports]
        AlgoObserver,
    )
    from sample_factory.algo.utils.env_info import (  # pyright: ignore[reportMissingImports]
        obtain_env_info_in_a_separate_process,
    )
    from sample_factory.algo.utils.model_sharing import (  # pyright: ignore[reportMissingImports]
        make_parameter_client,
    )
    from sample_factory.cfg.arguments import (  # pyright: ignore[reportMissingImports]
        parse_full_cfg,
        parse_sf_args,
    )
    from sample_factory.envs.env_utils import (  # pyright: ignore[reportMissingImports]
        register_env,
    )
    from sample_factory.train import make_runner  # pyright: ignore[reportMissingImports]
    from sample_factory.utils.timing import Timing  # pyright: ignore[reportMissingImports]
    from signal_slot.signal_slot import (  # pyright: ignore[reportMissingImports]
        EventLoopObject,
        Timer,
    )

    register_env("CartPole-v1", make_env)
    given = [*EXAMPLE.split(), "--device=cpu", f"--train_dir={folder}", f"--seed={race.seed}"]
    parser, _ = parse_sf_args(argv=given)
    config, runner = make_runner(parse_full_cfg(parser, given))

    class Evaluator(EventLoopObject):
        """Takes what the learner shares, as the inference workers do, and plays it by a timer."""

        client: Any = None

        def on_model(self, data: Any) -> None:
            _, state_dict, device, version = data
            info = obtain_env_info_in_a_separate_process(config)
            server = runner.learners[0].param_server
            client = make_parameter_client(False, server, config, info, Timing())
            client.on_weights_initialized(state_dict, device, version)
            self.client = client
            race.begin()
            self.timer = Timer(self.event_loop, EVERY)
            self.timer.timeout.connect(self.on_time)

        def on_time(self) -> None:
            score = evaluate(self.client, race.seed + 1000)
            # One version a batch; its own counter of steps lags by seconds.
            if race.decided(self.client.policy_version * config.batch_size, score):
                race.report()
                shutil.rmtree(folder, ignore_errors=True)
                # Its orderly end takes seconds: end all of its processes, ourselves with success.
                signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
                os.killpg(0, signal.SIGTERM)

    class Connect(AlgoObserver):
        def on_connect_components(self, runner: Any) -> None:
            runner.learners[0].model_initialized.connect(evaluator.on_model)

    runner.register_observer(Connect())
    evaluator = Evaluator(runner.event_loop, "evaluator")
    return runner


def main() -> None:
    """Read the arguments, and race."""
    race = Race("sample-factory", ("ppo-cartpole",), __doc__)
    os.setpgid(0, 0)
    runner = build(race, tempfile.mkdtemp(prefix="sample-factory-"))
    runner.init()
    runner.run()


if __name__ == "__main__":
    main()
