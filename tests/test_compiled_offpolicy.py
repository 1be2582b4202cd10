"""Off-policy training in one program: what it keeps, what it counts, that it learns."""

import jax
import numpy as np
import pytest
from learner_numpy import assert_trees_close, assert_trees_equal

from headrace.collect.rungs import make_collector
from headrace.envs.registry import spec as find_spec
from headrace.errors import HeadraceError
from headrace.learn import dqn, sac, td3
from headrace.train.compiled_offpolicy import CompiledOffPolicyTrainer
from headrace.train.evaluate import evaluate

SMALL = {"num_envs": 4, "steps": 8, "updates": 2, "replay_size": 256, "learning_starts": 64}


def pendulum(seed=0, **changes):
    spec = find_spec("Pendulum-v1")
    algorithm = sac.Sac(spec, sac.Config(hidden=(16, 16), batch_size=32, n_step=2))
    return CompiledOffPolicyTrainer(algorithm, spec, seed=seed, **(SMALL | changes))


def test_counts_and_the_ring():
    with pendulum() as trainer:
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
        np.testing.assert_array_equal(progress.episode_lengths, [200] * 4)
        assert (progress.episode_returns < -100).all()


def test_the_ring_holds_what_happened():
    """Each kept observation is followed by the next, as the environment's rules have it."""
    with pendulum() as trainer:
        trainer.advance(4)
        ring = trainer.state.ring
        batch = trainer._layout.unpack(ring.numbers[:128], ring.raw[:128])
        rows = jax.tree.map(lambda a: np.asarray(a).reshape(16, 8, -1)[:0], batch)
        assert rows.obs.shape[-1] == 3
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
        with pendulum(seed) as trainer:
            trainer.advance(6)
            ends.append(trainer.acting())
    assert_trees_equal(ends[0], ends[1])
    assert np.any(ends[0].head.weight != ends[2].head.weight)


def test_continues_bit_for_bit():
    with pendulum() as whole, pendulum(9) as other:
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
        with pendulum(definition=definition, updates=1) as trainer:
            trainer.advance(10)
            ends.append(trainer.acting())
    assert_trees_close(*ends, rtol=1e-3, atol=1e-4)


def test_acts_as_the_program_does():
    """What `acting` gives drives a NumPy policy."""
    with pendulum() as trainer:
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


def trained(algorithm, env, seed, iterations, **arguments):
    """The return after so many iterations."""
    with CompiledOffPolicyTrainer(algorithm, find_spec(env), seed=seed, **arguments) as trainer:
        trainer.advance(iterations)
        return evaluate(algorithm, trainer.acting(), find_spec(env), 20, 77).mean()


FAST = {"actor_learning_rate": 3e-3, "critic_learning_rate": 3e-3}


def sac_on_pendulum(**config):
    rates = FAST | {"temperature_learning_rate": 3e-3}
    return sac.Sac(find_spec("Pendulum-v1"), sac.Config(hidden=(64, 64), **(rates | config)))


def test_sac_learns():
    assert trained(sac_on_pendulum(), "Pendulum-v1", 0, 40) > -400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_sac_solves_pendulum(seed):
    assert trained(sac_on_pendulum(), "Pendulum-v1", seed, 100) >= -200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_td3_solves_pendulum(seed):
    config = td3.Config(hidden=(64, 64), exploration_noise=0.2, **FAST)
    algorithm = td3.Td3(find_spec("Pendulum-v1"), config)
    assert trained(algorithm, "Pendulum-v1", seed, 120) >= -200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_dqn_solves_cartpole(seed):
    algorithm = dqn.Dqn(find_spec("CartPole-v1"), dqn.Config(hidden=(64, 64), learning_rate=1e-3))
    assert trained(algorithm, "CartPole-v1", seed, 150) >= 475
