# SPDX-License-Identifier: Apache-2.0
"""Asynchronous runs learn, on several seeds; staleness stays within its bound."""

import pytest

from headrace.report.training import train
from headrace.runtime.status import StatusReader

RUNS = {
    "ppo": ("CartPole-v1", 400, {"samplers": 2, "num_envs": 16, "steps": 64, "preset": "none",
                                 "learning_rate": 1e-3, "epochs": 8, "staleness": 2}),
    "dqn": ("CartPole-v1", 400, {"samplers": 1, "envs_per_sampler": 4, "replay_ratio": 0.5}),
    "sac": ("Pendulum-v1", -250, {"samplers": 1, "envs_per_sampler": 4, "replay_ratio": 0.5}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("algo", RUNS)
def test_it_learns(algo, seed, tmp_path):
    env, wanted, given = RUNS[algo]
    run = train(
        env, algo=algo, mode="async", definition="gym", out=tmp_path / "run", plot=False, seed=seed,
        until=wanted, time_limit=240.0, total_steps=10_000_000, evaluation_every=2_000, tune=False,
        **given,
    )  # fmt: skip
    assert run.solved, run
    status = StatusReader(tmp_path / "run").newest()
    assert status is not None
    if algo == "ppo":
        assert status.staleness_max is not None
        assert 0 <= status.staleness_max <= 2


def test_a_short_run_makes_progress(tmp_path):
    run = train(
        "CartPole-v1", algo="ppo", mode="async", definition="gym", out=tmp_path / "run", plot=False,
        samplers=1, num_envs=8, steps=64, tune=False, total_steps=20_000, evaluation_every=4_000,
        evaluation_episodes=5, learning_rate=1e-3, epochs=8, preset="none",
    )  # fmt: skip
    assert run.env_steps >= 20_000
    statuses = list(StatusReader(tmp_path / "run").more())
    assert statuses[-1].state == "finished"
    assert run.last is not None
    assert run.last.env_steps >= 20_000  # what was learnt in the end was evaluated
    assert statuses[-1].frames == statuses[-1].updates // 32 * 8 * 64 * 8  # 8 epochs of 4 parts
    assert statuses[-1].updates > 20
    assert statuses[-1].staleness_max <= 4
    assert statuses[-1].train_return > 25
