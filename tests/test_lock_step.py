# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training in lock-step with one sampler is serial training."""

import numpy as np
import pytest

from headrace.report.training import train
from headrace.runtime import xla_updates
from headrace.train import checkpoint, trees
from headrace.train.config import environment
from headrace.train.resolve import resolve
from headrace.train.session import make_trainer

SMALL = {"num_envs": 4, "steps": 8, "total_steps": 160, "preset": "none"}
OFF_POLICY = {"batch_size": 32, "learning_starts": 60, "updates": 4, "replay_size": 200}


@pytest.mark.parametrize(
    ("env", "algo", "definition", "given"),
    [
        ("Pendulum-v1", "sac", "gym", OFF_POLICY | {"hidden": (16,)}),
        ("CartPole-v1", "dqn", "gym", OFF_POLICY | {"hidden": (16,), "n_step": 3}),
        ("CartPole-v1", "ppo", "native", {"hidden": (16,), "epochs": 2}),
    ],
)
def test_lock_step_is_serial(env, algo, definition, given, tmp_path):
    settings = SMALL | given
    run = train(
        env,
        algo=algo,
        definition=definition,
        mode="async",
        out=tmp_path / "run",
        plot=False,
        lock_step=True,
        tune=False,
        samplers=1,
        evaluator=False,
        **settings,
    )
    path = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    loaded = checkpoint.read(path)
    assert run.env_steps >= 160

    serial = {"preset": settings["preset"]}
    config = resolve(
        env,
        algo=algo,
        mode="serial",
        definition=definition,
        given={name: value for name, value in settings.items() if name not in serial},
        **serial,
    )
    trainer = make_trainer(config, environment(config))
    while trainer.advance(1).updates < loaded.meta["updates"]:
        pass
    theirs = trees.named({"learner": trainer.state.learner})
    trainer.close()
    assert loaded.meta["updates"] >= 5
    assert theirs.keys() == loaded.arrays.keys()
    for name, array in theirs.items():
        np.testing.assert_allclose(loaded.arrays[name], array, rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_dispatch_of_several_updates_is_as_many_updates():
    import jax

    from headrace.learn.algorithm import Transitions

    config = resolve("Pendulum-v1", algo="sac", given={"hidden": (16,), "batch_size": 8})
    from headrace.train.session import make_algorithm_of

    algorithm = make_algorithm_of(config, environment(config))
    generator = np.random.default_rng(0)
    shapes = {"obs": (3,), "action": (1,), "reward": (), "discount": (), "next_obs": (3,)}
    batches = Transitions(
        **{k: generator.uniform(-1, 1, (3, 8, *v)).astype(np.float32) for k, v in shapes.items()}
    )
    state = algorithm.init(1)
    together = xla_updates.one_device(algorithm)(algorithm.init(1), batches)
    one_by_one = jax.jit(algorithm.update)
    for k in range(3):
        state, _ = one_by_one(state, jax.tree.map(lambda rows, k=k: rows[k], batches))
    for name, array in trees.named(state).items():
        np.testing.assert_allclose(
            trees.named(together.state)[name], array, rtol=1e-4, atol=1e-6, err_msg=name
        )
    flat = np.concatenate([np.ravel(x) for x in trees.named(algorithm.acting(state)).values()])
    np.testing.assert_allclose(together.vector, flat, rtol=1e-4, atol=1e-6)
