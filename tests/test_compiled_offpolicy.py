"""Off-policy training in one program: what it keeps, what it counts, that it learns."""

import dataclasses
from contextlib import closing

import jax
import numpy as np
import pytest
from learner_numpy import assert_trees_close, assert_trees_equal

from headrace import _native
from headrace.collect.rungs import make_collector
from headrace.envs.registry import spec as find_spec
from headrace.errors import HeadraceError
from headrace.learn import sac
from headrace.train.algorithms import find_algorithm
from headrace.train.compiled_offpolicy import CompiledOffPolicyTrainer
from headrace.train.evaluate import evaluate
from headrace.train.presets import find_preset

SMALL = {"num_envs": 4, "steps": 8, "updates": 2, "replay_size": 256, "learning_starts": 64}


def pendulum(seed=0, **changes):
    spec = find_spec("Pendulum-v1")
    algorithm = sac.Sac(spec, sac.Config(hidden=(16, 16), batch_size=32, n_step=2))
    return CompiledOffPolicyTrainer(algorithm, spec, seed=seed, **(SMALL | changes))


def test_counts_and_the_ring():
    with closing(pendulum()) as trainer:
        progress = trainer.advance(4)
        # Two rows of 32 transitions before the first update, then two updates an iteration.
        assert (progress.env_steps, progress.updates) == (128, 6)
        assert int(trainer.state.ring.size) == 128
        progress = trainer.advance(4)
        assert (progress.env_steps, progress.updates) == (256, 14)
        assert progress.episode_lengths.size == 0
        assert set(progress.metrics) >= {"loss/critic", "loss/actor", "policy/entropy"}
        assert all(np.isfinite(value) for value in progress.metrics.values())
        trainer.advance(4)
        progress = trainer.advance(16)
        assert int(trainer.state.ring.size) == 256
        assert int(trainer.state.learner.updates) == progress.updates
        assert progress.generation_seconds > 0
        assert progress.update_seconds > 0
        np.testing.assert_array_equal(progress.episode_lengths, [200] * 4)
        assert (progress.episode_returns < -100).all()


def test_the_ring_holds_what_happened():
    """Each kept observation is followed by the next, as the environment's rules have it."""
    with closing(pendulum()) as trainer:
        trainer.advance(4)
        ring = trainer.state.ring
        batch = trainer._layout.unpack(ring.numbers[:128], ring.raw[:128])
        obs = np.asarray(batch.obs).reshape(4, 8, 4, 3)
        next_obs = np.asarray(batch.next_obs).reshape(4, 8, 4, 3)
        # n = 2: two steps on, but one at an iteration's end.
        np.testing.assert_array_equal(next_obs[:, :6], obs[:, 2:])
        np.testing.assert_array_equal(next_obs[:-1, 7], obs[1:, 0])
        discount = np.asarray(batch.discount).reshape(4, 8, 4)
        np.testing.assert_allclose(discount[:, :7], 0.99**2, rtol=1e-6)
        np.testing.assert_allclose(discount[:, 7], 0.99, rtol=1e-6)


def test_same_seed_same_run():
    ends = []
    for seed in (5, 5, 6):
        with closing(pendulum(seed)) as trainer:
            trainer.advance(6)
            ends.append(trainer.acting())
    assert_trees_equal(ends[0], ends[1])
    assert np.any(ends[0].head.weight != ends[2].head.weight)


def test_continues_bit_for_bit():
    with closing(pendulum()) as whole, closing(pendulum(9)) as other:
        whole.advance(6)
        saved = jax.tree.map(np.array, whole.state)
        other.load_state(saved)
        ours, theirs = whole.advance(6), other.advance(6)
        assert_trees_equal(whole.state, other.state)
        assert ours.metrics == theirs.metrics
        assert (ours.env_steps, ours.updates) == (theirs.env_steps, theirs.updates)


def test_native_fed_is_array_fed():
    ends = []
    for definition in ("array", "native"):
        with closing(pendulum(definition=definition, updates=1)) as trainer:
            trainer.advance(10)
            ends.append(trainer.acting())
    assert_trees_close(*ends, rtol=1e-3, atol=1e-4)


def test_acts_as_the_program_does():
    """What `acting` gives drives a NumPy policy."""
    with closing(pendulum()) as trainer:
        trainer.advance(4)
        policy = trainer.algorithm.policy("numpy")
        with make_collector(
            "Pendulum-v1", rung="numpy", num_envs=3, steps=5, policy=policy
        ) as play:
            assert np.isfinite(play.collect(trainer.acting()).action).all()


def test_errors():
    with pytest.raises(HeadraceError, match="the ring holds 64"):
        pendulum(replay_size=64, learning_starts=100)
    with pytest.raises(HeadraceError, match="not gym"):
        pendulum(definition="gym")


def by_preset(algo, env, seed, share=1.0, **changes):
    """The best mean return of the evaluations of a run by its preset, to its end or its target."""
    values = dict(find_preset(env, algo).values) | changes
    kind, config = find_algorithm(algo)
    names = {item.name for item in dataclasses.fields(config)}
    spec = find_spec(env)
    algorithm = kind(spec, config(**{k: v for k, v in values.items() if k in names}))
    arguments = {k: values[k] for k in ("num_envs", "steps", "updates") if k in values}
    best = -np.inf
    with closing(CompiledOffPolicyTrainer(algorithm, spec, seed=seed, **arguments)) as trainer:
        iterations = values["evaluation_every"] // (values["num_envs"] * values["steps"])
        made = 0
        while made < share * values["total_steps"] and best < values["until"]:
            made = trainer.advance(iterations).env_steps
            best = max(best, evaluate(algorithm, trainer.acting(), spec, 20, 77).mean())
    return best


def test_sac_learns():
    assert by_preset("sac", "Pendulum-v1", 0, share=0.15) > -400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("algo", "env", "least"),
    [("sac", "Pendulum-v1", -200), ("td3", "Pendulum-v1", -200), ("dqn", "CartPole-v1", 475)],
)
def test_solves(algo, env, least, seed):
    assert by_preset(algo, env, seed) >= least


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["sac", "td3"])
@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_bfloat16_learns_as_well(algo, precision):
    """Both solve it with 256 x 256, on each of three seeds."""
    if not _native.has_mlp(precision == "bf16"):
        pytest.skip("this processor has no such products")
    for seed in range(3):
        changes = {"hidden": (256, 256), "precision": precision}
        slower = {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3}
        assert by_preset(algo, "Pendulum-v1", seed, **changes, **slower) >= -200
