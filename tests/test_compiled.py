# SPDX-License-Identifier: Apache-2.0
"""The compiled trainer: its parts' own results, whatever the chunks; saved, restored, evaluated."""

import time

import jax
import numpy as np
import pytest

import headrace
from headrace import HeadraceError
from headrace.collect.native_xla import NativeXlaCollector
from headrace.learn.ppo import Config, Ppo
from headrace.train.compiled import CompiledTrainer
from headrace.train.config import Settings
from headrace.train.evaluate import evaluate
from headrace.train.experience import rollout_of
from headrace.train.presets import PRESETS, find_preset
from headrace.train.session import scored

SMALL = Config(hidden=(8,), epochs=2, minibatches=2, learning_rate=1e-2)


def trainer(env="CartPole-v1", config=SMALL, num_envs=8, steps=16, **arguments):
    spec = headrace.spec(env)
    return CompiledTrainer(
        Ppo(spec, config), spec, num_envs=num_envs, steps=steps, **{"seed": 0, **arguments}
    )


def assert_same(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(np.asarray(x), np.asarray(y)), a, b)


def assert_close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4), a, b)


def test_chunks_and_restarts_change_no_bit():
    whole = trainer()
    all_at_once = whole.advance(70)
    one = trainer()
    parts = [one.advance(3), one.advance(1)]
    saved = jax.tree.map(np.array, one.state)
    one.advance(2)  # which the other does not see
    other = trainer()
    other.load_state(saved)
    parts += [other.advance(60), other.advance(6)]
    assert_same(whole.state, other.state)
    assert all_at_once.env_steps == parts[-1].env_steps == 70 * 8 * 16
    assert all_at_once.updates == parts[-1].updates == 70 * 4
    np.testing.assert_array_equal(
        all_at_once.episode_returns, np.concatenate([part.episode_returns for part in parts])
    )
    assert not np.array_equal(trainer(seed=1).advance(70).episode_returns, all_at_once[3])


def test_both_phases_take_their_part_of_the_time():
    small = trainer()
    small.advance(1)
    began = time.perf_counter()
    before = small.advance(1)
    after = small.advance(50)
    generation = after.generation_seconds - before.generation_seconds
    update = after.update_seconds - before.update_seconds
    assert generation > 0
    assert update > 0
    assert generation + update < time.perf_counter() - began


def test_an_iteration_is_a_batch_of_the_rung_and_an_update_from_it():
    made = trainer()
    spec, algorithm = made.algorithm.spec, made.algorithm
    state, update = algorithm.init(0), jax.jit(algorithm.update)
    with headrace.make_collector(
        spec, rung="native-xla", num_envs=8, steps=16, policy=algorithm.policy("jax")
    ) as source:
        assert isinstance(source, NativeXlaCollector)
        for _ in range(10):
            batch = source.collect(algorithm.acting(state))
            state, metrics = update(state, rollout_of(batch))
    progress = made.advance(9)
    last = made.advance(1)
    assert_close(jax.tree.leaves(made.acting()), jax.tree.leaves(algorithm.acting(state)))
    assert last.metrics.keys() == metrics.keys()
    for name, value in metrics.items():
        assert last.metrics[name] == pytest.approx(float(value), rel=0.05, abs=1e-3)
    assert progress.episode_returns.dtype == np.float32
    np.testing.assert_array_equal(progress.episode_returns, progress.episode_lengths)


@pytest.mark.parametrize(
    "env", ["CartPole-v1", pytest.param("Pendulum-v1", marks=pytest.mark.slow)]
)
def test_native_and_array_environments_teach_the_same(env):
    ways = [trainer(env, definition=definition) for definition in ("native", "array")]
    for way in ways:
        way.advance(3)
    assert_close(*(way.acting() for way in ways))


@pytest.mark.parametrize("definition", ["native", "array"])
def test_one_program_serves_every_seed(definition):
    texts = []
    for seed in (0, 2**40 + 1):
        made = trainer(seed=seed, definition=definition)
        texts.append(made._program.lower(made._state, np.int32(1)).as_text())
    assert texts[0] == texts[1]


def test_chess_by_turns_with_masks():
    config = Config(channels=8, blocks=1, epochs=1, minibatches=2)
    made = trainer("Chess-v0", config, num_envs=4, steps=8)
    progress = made.advance(2)
    assert all(np.isfinite(value) for value in progress.metrics.values())
    returns = evaluate(
        made.algorithm,
        made.acting(),
        headrace.spec("ChessVsRandom-v0", max_episode_steps=10),
        episodes=3,
        seed=0,
    )
    assert set(returns) <= {-1.0, 0.0, 1.0}


def test_evaluation_counts_each_environments_first_episodes():
    made = trainer()
    spec, acting = made.algorithm.spec, made.acting()
    got = evaluate(made.algorithm, acting, spec, 5, seed=3, deterministic=False)
    with headrace.make_collector(
        spec, rung="numpy", num_envs=5, steps=500, seed=3, policy=made.algorithm.policy("numpy")
    ) as source:
        batch = source.collect(acting)
    first = [batch.episode_return[batch.end_at[:, 1] == env][0] for env in range(5)]
    np.testing.assert_array_equal(got, first)
    again = evaluate(made.algorithm, acting, spec, 300, seed=3, deterministic=False)
    assert len(again) == 300
    assert len(set(again)) > 5


def test_an_evaluation_that_would_end_the_run_is_made_of_more_episodes():
    made = trainer()
    spec, acting = made.algorithm.spec, made.acting()
    for until, episodes in ((1.0, 24), (1000.0, 4), (None, 4)):
        settings = Settings(evaluation_episodes=4, until=until)
        assert len(scored(made.algorithm, acting, spec, settings)) == episodes
    slow = headrace.spec("MountainCar-v0", max_episode_steps=5)
    algorithm = Ppo(slow, SMALL)
    acting, settings = algorithm.acting(algorithm.init(0)), Settings(until=-10.0)
    assert len(scored(algorithm, acting, slow, settings)) == settings.evaluation_episodes


def test_environments_of_gymnasium_alone_are_evaluated_in_this_process():
    spec = headrace.spec("MountainCar-v0")
    algorithm = Ppo(spec, SMALL)
    returns = evaluate(algorithm, algorithm.acting(algorithm.init(0)), spec, 2, seed=0)
    np.testing.assert_array_equal(returns, [-200, -200])


def test_what_cannot_be_trained_is_said():
    with pytest.raises(HeadraceError, match="from array or native definitions, not gym"):
        trainer(definition="gym")
    with pytest.raises(HeadraceError, match="needs the array definition"):
        trainer("Chess-v0", definition="array")
    with pytest.raises(HeadraceError, match="100 samples do not divide into 3 minibatches"):
        trainer(config=Config(minibatches=3), num_envs=10, steps=10)


def test_presets_are_found_by_name():
    assert find_preset("CartPole-v1", "ppo").name == "default"
    assert find_preset("CartPole-v1", "ppo", "throughput").values["epochs"] == 1
    assert find_preset("Acrobot-v1", "ppo") is None
    with pytest.raises(HeadraceError, match="did you mean throughput"):
        find_preset("CartPole-v1", "ppo", "throughputs")
    with pytest.raises(HeadraceError, match="no preset of ppo for Acrobot-v1"):
        find_preset("Acrobot-v1", "ppo", "throughput")


def preset_trainer(env, name, seed):
    values = dict(PRESETS[env, "ppo"][name])
    config = {k: v for k, v in values.items() if k in Config.__dataclass_fields__}
    return trainer(
        env, Config(**config), num_envs=values["num_envs"], steps=values["steps"], seed=seed
    )


def solves(made, target, most):
    """Whether an evaluation reaches the target before so many steps, and 100 fresh episodes do."""
    spec, steps = made.algorithm.spec, 0
    while steps < most:
        steps = made.advance(max(1, 4096 // (made.num_envs * made.steps))).env_steps
        for episodes in (20, 100):
            returns = evaluate(made.algorithm, made.acting(), spec, episodes, seed=steps + episodes)
            if returns.mean() < target:
                break
        else:
            return True
    return False


def test_ppo_solves_cartpole():
    assert solves(preset_trainer("CartPole-v1", "default", 0), 475, 60_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("env", "name", "target", "most"),
    [
        ("CartPole-v1", "default", 475, 100_000),
        ("CartPole-v1", "throughput", 475, 2_000_000),
        ("Pendulum-v1", "default", -200, 200_000),
    ],
)
def test_ppo_solves_what_its_presets_are_for(env, name, target, most, seed):
    assert solves(preset_trainer(env, name, seed), target, most)
