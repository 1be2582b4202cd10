"""SAC: its equations against NumPy, its gradients against differences, parts against the whole."""

import jax
import numpy as np
import pytest
from learner_numpy import (
    assert_gradient,
    assert_trees_close,
    continuous_spec,
    discrete_spec,
    network,
    shaken,
    transitions,
)
from scipy.integrate import quad

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.errors import HeadraceError
from headrace.learn import blocks
from headrace.learn.distributions import SquashedGaussian
from headrace.learn.sac import Config, Sac
from headrace.policy import PolicyKey

SPEC = continuous_spec()
CONFIG = Config(hidden=(8, 8), temperature=0.3)


@pytest.fixture(scope="module")
def sac():
    return Sac(SPEC, CONFIG)


@pytest.fixture(scope="module")
def state(sac):
    begin = sac.init(3)
    actor = begin.actor._replace(params=shaken(begin.actor.params))
    params = shaken(begin.critic.params, 1)
    critic = begin.critic._replace(params=params, target=shaken(params, 2))
    return begin._replace(actor=actor, critic=critic)


def numpy_actor(params, obs, noise):
    """Actions and log-probabilities, by the formula that a change of variables gives."""
    out = network(params, obs)
    mean, log_std = out[:, :2], np.clip(out[:, 2:], -20, 2)
    before = mean + np.exp(log_std) * noise
    normal = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    action = np.tanh(before)
    return action, (normal - np.log(1 - action**2)).sum(axis=1)


def numpy_values(twins, obs, action):
    x = np.concatenate([obs, action], axis=1)
    return [network(twin, x)[:, 0] for twin in twins]


def flat_action(batch):
    return (batch.action - np.array([0, 1])) / np.array([2, 2])


NOISE = np.random.default_rng(5).standard_normal((32, 2)).astype(np.float32)
BATCH = transitions(SPEC, 32)


def test_critic_target(sac, state):
    critic, actor = state.critic, state.actor
    got = sac.critic_target(critic.target, actor.params, actor.log_temperature, BATCH, NOISE)
    action, log_prob = numpy_actor(actor.params, BATCH.next_obs, NOISE)
    least = np.minimum(*numpy_values(critic.target, BATCH.next_obs, action))
    want = BATCH.reward + BATCH.discount * (least - 0.3 * log_prob)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


TARGET = np.random.default_rng(1).standard_normal(32).astype(np.float32)


def numpy_critic_loss(twins):
    values = numpy_values(twins, BATCH.obs, flat_action(BATCH))
    return sum(((value - TARGET) ** 2).mean() for value in values)


def numpy_actor_loss(params, critics):
    action, log_prob = numpy_actor(params, BATCH.obs, NOISE)
    return (0.3 * log_prob - np.minimum(*numpy_values(critics, BATCH.obs, action))).mean()


def test_critic_loss_and_gradient(sac, state):
    twins = state.critic.params
    (got, mean), gradient = jax.value_and_grad(sac.critic_loss, has_aux=True)(
        twins, BATCH.obs, flat_action(BATCH), TARGET
    )
    np.testing.assert_allclose(got, numpy_critic_loss(twins), rtol=1e-4)
    first = numpy_values(twins, BATCH.obs, flat_action(BATCH))[0]
    np.testing.assert_allclose(mean, first.mean(), rtol=1e-4)
    assert_gradient(gradient, numpy_critic_loss, twins)


def test_actor_loss_and_gradient(sac, state):
    params, twins = state.actor.params, state.critic.params
    (got, log_prob), gradient = jax.value_and_grad(sac.actor_loss, has_aux=True)(
        params, twins, np.float32(np.log(0.3)), BATCH.obs, NOISE
    )
    np.testing.assert_allclose(got, numpy_actor_loss(params, twins), rtol=1e-4)
    np.testing.assert_allclose(log_prob, numpy_actor(params, BATCH.obs, NOISE)[1].mean(), rtol=1e-4)
    assert_gradient(gradient, lambda params: numpy_actor_loss(params, twins), params)


def test_log_probabilities_integrate_to_one():
    ns = namespace("numpy")
    for mean, log_std in ((0.0, 0.0), (0.7, -1.0), (-1.5, 0.4)):
        policy = SquashedGaussian(ns, np.array([mean]), np.array([log_std]))

        def density(action, policy=policy, mean=mean, log_std=log_std):
            noise = (np.arctanh(action) - mean) / np.exp(log_std)
            sampled, log_prob = policy.sample(np.array([noise]))
            assert sampled[0] == pytest.approx(action)
            return float(np.exp(log_prob))

        assert quad(density, -1, 1, limit=200)[0] == pytest.approx(1, abs=1e-4)


def test_temperature_follows_entropy(sac, state):
    """More entropy than is wanted lowers the temperature, less raises it."""
    for wanted, falls in ((-50.0, True), (50.0, False)):
        config = Config(hidden=(8, 8), target_entropy=wanted)
        actor, metrics = Sac(SPEC, config).update_actor(
            state.actor, state.critic.params, BATCH.obs, state.seed, state.updates
        )
        assert (metrics["policy/entropy"] > wanted) == falls
        assert (actor.log_temperature < state.actor.log_temperature) == falls
        # Adam's first step is as long as the learning rate.
        moved = abs(float(actor.log_temperature - state.actor.log_temperature))
        assert moved == pytest.approx(config.temperature_learning_rate, rel=1e-3)


def test_fixed_temperature(state):
    config = Config(hidden=(8, 8), learn_temperature=False)
    actor, _ = Sac(SPEC, config).update_actor(
        state.actor, state.critic.params, BATCH.obs, state.seed, state.updates
    )
    assert actor.log_temperature == state.actor.log_temperature


def test_targets_follow(sac, state):
    after, _ = jax.jit(sac.update)(state, BATCH)
    want = jax.tree.map(
        lambda slow, fast: 0.995 * slow + 0.005 * fast, state.critic.target, after.critic.params
    )
    assert_trees_close(after.critic.target, want, rtol=1e-5, atol=1e-6)


def test_large_batches_in_blocks_are_the_same(sac, state, monkeypatch):
    batch = transitions(SPEC, 64)
    whole, _ = jax.jit(sac.update)(state, batch)
    monkeypatch.setattr(blocks, "BLOCK", 16)
    parts, metrics = jax.jit(lambda state, batch: sac.update(state, batch))(state, batch)
    # Adam's first steps are as long as the learning rate, whichever sign rounding gives to nothing.
    assert_trees_close(whole.critic.adam.mean, parts.critic.adam.mean, rtol=1e-4, atol=1e-6)
    assert_trees_close(whole.actor.adam.mean, parts.actor.adam.mean, rtol=1e-4, atol=1e-6)
    assert np.isfinite(metrics["loss/critic"])


def test_parts_on_their_own_are_the_whole(sac, state):
    """Separate programs that exchange parameters alone: what two devices run."""
    critic_program, actor_program = jax.jit(sac.update_critic), jax.jit(sac.update_actor)
    whole, critic, actor = state, state.critic, state.actor
    update = jax.jit(sac.update)
    for number in range(10):
        batch = transitions(SPEC, 32, number)
        word = np.uint32(number)
        moved, _ = critic_program(critic, actor, batch, state.seed, word)
        actor, _ = actor_program(actor, critic.params, batch.obs, state.seed, word)
        critic = moved
        whole, _ = update(whole, batch)
    assert_trees_close((critic, actor), (whole.critic, whole.actor), rtol=1e-4, atol=1e-5)


def test_noise_differs_by_update_and_part(sac, state):
    noises = [
        sac._noise(state.seed, np.uint32(number), stream, 1000)
        for number in (0, 1)
        for stream in (17, 18)
    ]
    for i, a in enumerate(noises):
        assert abs(a.mean()) < 0.1
        assert a.std() == pytest.approx(1, abs=0.1)
        for b in noises[:i]:
            assert abs(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]) < 0.1


@pytest.mark.parametrize("deterministic", [False, True])
def test_numpy_and_jax_policies_agree(sac, state, deterministic):
    obs = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)
    actions = []
    for library in ("numpy", "jax"):
        key = PolicyKey(identify(namespace(library), 16, 7), np.uint32(3))
        policy = sac.policy(library, deterministic=deterministic)
        action, _ = policy.apply(sac.acting(state), obs, None, key)
        actions.append(np.asarray(action))
    assert SPEC.action_space.contains(actions[0][0])
    np.testing.assert_allclose(*actions, rtol=1e-4, atol=1e-5)


def test_wrong_action_spaces():
    with pytest.raises(HeadraceError, match="SAC needs continuous actions"):
        Sac(discrete_spec(), Config())
