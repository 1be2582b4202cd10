# SPDX-License-Identifier: Apache-2.0
"""Serial training: the same updates as elsewhere, from any environment, and stopped and resumed."""

from typing import Any

import jax
import numpy as np
import pytest

from headrace.collect.rungs import make_collector
from headrace.envs import registry
from headrace.learn import dqn, ppo, sac
from headrace.train import trees
from headrace.train.compiled import CompiledTrainer
from headrace.train.experience import rollout_of
from headrace.train.serial import SerialTrainer
from headrace.train.session import only

SMALL_PPO = ppo.Config(hidden=(8,), epochs=2, minibatches=2, learning_rate=1e-3)


def cartpole(definition: str = "native") -> Any:
    return only(registry.spec("CartPole-v1", max_episode_steps=20), definition)


def same(a: Any, b: Any) -> bool:
    ours, theirs = trees.named(a), trees.named(b)
    return ours.keys() == theirs.keys() and all(
        np.asarray(ours[name]).tobytes() == np.asarray(theirs[name]).tobytes() for name in ours
    )


def test_it_is_collect_and_update_in_turn() -> None:
    spec = cartpole("gym")
    algorithm = ppo.Ppo(spec, SMALL_PPO)
    trainer = SerialTrainer(algorithm, spec, num_envs=3, steps=8, seed=4, definition="gym")
    progress = trainer.advance(5)
    state = algorithm.init(4)
    update = jax.jit(algorithm.update)
    returns = []
    policy = algorithm.policy("numpy")
    with make_collector(spec, rung="python", num_envs=3, steps=8, seed=4, policy=policy) as source:
        for _ in range(5):
            batch = source.collect(jax.tree.map(np.asarray, algorithm.acting(state)))
            returns += batch.episodes()[0].tolist()
            state, _ = update(state, jax.tree.map(np.array, rollout_of(batch)))
    assert same(trainer.state.learner, state)
    assert progress.episode_returns.tolist() == returns
    assert (progress.env_steps, progress.updates, progress.update_frames) == (120, 20, 240)
    trainer.close()


def test_calls_do_not_matter() -> None:
    spec = cartpole()
    trainers = [
        SerialTrainer(ppo.Ppo(spec, SMALL_PPO), spec, num_envs=4, steps=8, definition="native")
        for _ in range(2)
    ]
    trainers[0].advance(6)
    for count in (1, 2, 3):
        trainers[1].advance(count)
    assert same(trainers[0].state, trainers[1].state)


@pytest.mark.parametrize("learner", ["xla", "host"])
def test_native_environments_go_on_where_they_were(learner: Any) -> None:
    spec = cartpole()

    def trainer() -> SerialTrainer:
        return SerialTrainer(
            ppo.Ppo(spec, SMALL_PPO),
            spec,
            num_envs=4,
            steps=8,
            definition="native",
            learner=learner,
        )

    whole, first, second = trainer(), trainer(), trainer()
    whole.advance(6)
    first.advance(2)
    kept = jax.tree.map(np.array, first.state)
    second.load_state(kept)
    second.advance(4)
    assert same(whole.state, second.state)


def test_others_begin_new_episodes() -> None:
    spec = cartpole("gym")

    def trainer() -> SerialTrainer:
        return SerialTrainer(ppo.Ppo(spec, SMALL_PPO), spec, num_envs=2, steps=8, definition="gym")

    first = trainer()
    first.advance(2)
    kept = jax.tree.map(np.array, first.state)
    again = [trainer(), trainer()]
    for one in again:
        one.load_state(kept)
        assert one.advance(3).env_steps == 5 * 16
    assert same(again[0].state, again[1].state)  # the same future each time
    first.advance(3)
    assert not same(first.state, again[0].state)


def test_serial_and_compiled_learn_the_same() -> None:
    """Ten iterations: the same environments, policies that agree to rounding."""
    spec = cartpole()
    algorithm = ppo.Ppo(spec, SMALL_PPO)
    serial = SerialTrainer(algorithm, spec, num_envs=8, steps=16, seed=1, definition="native")
    compiled = CompiledTrainer(algorithm, spec, num_envs=8, steps=16, seed=1, definition="native")
    ours, theirs = serial.advance(10), compiled.advance(10)
    assert (ours.env_steps, ours.updates) == (theirs.env_steps, theirs.updates)
    # An action in some thousand falls the other way; so it is the learning that is compared.
    for name, array in trees.named(serial.acting()).items():
        np.testing.assert_allclose(array, trees.named(compiled.acting())[name], atol=0.02)
    compiled.close()


@pytest.mark.parametrize("kind", ["dqn", "sac"])
def test_off_policy(kind: str) -> None:
    name, module = {"dqn": ("CartPole-v1", dqn), "sac": ("Pendulum-v1", sac)}[kind]
    spec = only(registry.spec(name), "gym")
    config = module.Config(hidden=(8,), batch_size=16, n_step=2)
    algorithm = (dqn.Dqn if kind == "dqn" else sac.Sac)(spec, config)
    trainer = SerialTrainer(
        algorithm, spec, num_envs=2, steps=8, updates=4, replay_size=100, learning_starts=30
    )
    first = trainer.advance(1)
    assert (first.env_steps, first.updates, first.metrics) == (16, 0, {})
    progress = trainer.advance(3)
    assert (progress.env_steps, progress.updates, progress.update_frames) == (64, 12, 192)
    assert all(np.isfinite(value) for value in progress.metrics.values())
    ring = trainer.state.ring
    assert ring is not None
    assert (int(ring.size), len(ring.numbers)) == (64, 112)  # whole batches
    assert progress.generation_seconds is not None
    assert progress.generation_seconds > 0
    trainer.close()
