# SPDX-License-Identifier: Apache-2.0
"""Distributions against SciPy, counted samples, and finite differences; both libraries alike."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from headrace.envs.array.namespace import namespace
from headrace.learn.distributions import (
    ActionRange,
    Categorical,
    Gaussian,
    SquashedGaussian,
    standard_normals,
)

NS = namespace("numpy")
JAX = namespace("jax")
CHANCE = np.random.default_rng(1)
LOGITS = CHANCE.normal(0, 2, (5, 7)).astype(np.float32)
LEGAL = CHANCE.random((5, 7)) < 0.6
LEGAL[:, 3] = True


def probabilities(logits, legal):
    exps = np.where(legal, np.exp(logits.astype(np.float64)), 0)
    return exps / exps.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("masked", [False, True])
def test_categorical_is_what_it_says(library, masked):
    ns = namespace(library)
    legal = LEGAL if masked else np.ones_like(LEGAL)
    dist = Categorical(ns, ns.xp.asarray(LOGITS), ns.xp.asarray(legal) if masked else None)
    wanted = probabilities(LOGITS, legal)
    np.testing.assert_allclose(np.exp(np.asarray(dist.log_probs)), wanted, atol=1e-6)
    action = wanted.argmax(axis=-1)
    np.testing.assert_array_equal(dist.mode(), action)
    np.testing.assert_allclose(
        dist.log_prob(ns.xp.asarray(action)), np.log(wanted.max(axis=-1)), atol=1e-5
    )
    np.testing.assert_allclose(dist.entropy(), scipy.stats.entropy(wanted, axis=-1), atol=1e-5)


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_samples_come_as_often_as_they_should_and_illegal_ones_never(library):
    ns = namespace(library)
    wanted = probabilities(LOGITS[:1], LEGAL[:1])[0]
    uniform = (np.arange(20_000, dtype=np.float32) / 20_000).astype(np.float32)
    many = np.broadcast_to(LOGITS[:1], (len(uniform), 7))
    legal = np.broadcast_to(LEGAL[:1], many.shape)
    dist = Categorical(ns, ns.xp.asarray(many), ns.xp.asarray(legal))
    action = np.asarray(dist.sample(ns.xp.asarray(uniform)))
    np.testing.assert_allclose(np.bincount(action, minlength=7) / len(uniform), wanted, atol=2e-4)
    assert LEGAL[0][action].all()


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_illegal_actions_are_not_sampled_at_the_edges_of_long_masks(library):
    ns = namespace(library)
    chance = np.random.default_rng(2)
    legal = chance.random((400, 4672)) < 0.005
    legal[:, 17] = True
    logits = chance.normal(0, 3, legal.shape).astype(np.float32)
    dist = Categorical(ns, ns.xp.asarray(logits), ns.xp.asarray(legal))
    for edge in (0.0, 1 - 2.0**-24, 0.5):
        action = np.asarray(dist.sample(ns.xp.full(400, edge, dtype=ns.xp.float32)))
        assert legal[np.arange(400), action].all()


def test_an_illegal_actions_logit_gets_no_gradient_and_the_others_the_right_one():
    def total(logits):
        action = jnp.array([3] * 5)
        dist = Categorical(JAX, logits, jnp.asarray(LEGAL))
        return (dist.log_prob(action) + 0.3 * dist.entropy()).sum()

    gradient = np.asarray(jax.grad(total)(jnp.asarray(LOGITS)))
    assert (gradient[~LEGAL] == 0).all()
    p = probabilities(LOGITS, LEGAL)
    log_p = np.log(np.where(LEGAL, p, 1))
    entropy = -(p * log_p).sum(axis=-1, keepdims=True)
    chosen = np.arange(7) == 3
    np.testing.assert_allclose(gradient, chosen - p - 0.3 * p * (log_p + entropy), atol=1e-5)


def test_where_nothing_is_legal_nothing_is_infinite():
    def total(logits):
        dist = Categorical(JAX, logits, jnp.zeros((5, 7), bool))
        return (dist.log_prob(jnp.zeros(5, int)) + dist.entropy()).sum()

    value, gradient = jax.value_and_grad(total)(jnp.asarray(LOGITS))
    assert np.isfinite(value)
    assert not np.asarray(gradient).any()


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_gaussian_is_scipys(library):
    ns = namespace(library)
    mean, log_std = LOGITS[:, :3], np.array([-1.0, 0.0, 0.5], np.float32)
    dist = Gaussian(ns, ns.xp.asarray(mean), ns.xp.asarray(log_std))
    action = np.asarray(dist.sample(ns.xp.asarray(LOGITS[:, 3:6])))
    normal = scipy.stats.norm(mean, np.exp(log_std))
    np.testing.assert_allclose(
        dist.log_prob(ns.xp.asarray(action)), normal.logpdf(action).sum(axis=-1), rtol=1e-4
    )
    np.testing.assert_allclose(dist.entropy(), normal.entropy().sum(axis=-1), rtol=1e-5)


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_squashed_gaussian_has_the_density_of_its_change_of_variables(library):
    ns = namespace(library)
    mean, log_std = 0.3 * LOGITS[:, :2], np.full((5, 2), -0.5, np.float32)
    noise = 0.3 * LOGITS[:, 2:4]
    dist = SquashedGaussian(ns, ns.xp.asarray(mean), ns.xp.asarray(log_std))
    action, log_prob = dist.sample(ns.xp.asarray(noise))
    before = mean.astype(np.float64) + np.exp(-0.5) * noise
    normal = scipy.stats.norm(mean, np.exp(-0.5))
    wanted = (normal.logpdf(before) - np.log(1 - np.tanh(before) ** 2)).sum(axis=-1)
    np.testing.assert_allclose(action, np.tanh(before), rtol=1e-5)
    np.testing.assert_allclose(log_prob, wanted, rtol=1e-4)
    np.testing.assert_allclose(dist.mode(), np.tanh(mean), rtol=1e-5)


def test_squashed_gaussian_is_finite_where_the_tangent_is_one():
    def total(mean):
        action, log_prob = SquashedGaussian(JAX, mean, jnp.zeros_like(mean)).sample(0 * mean)
        return (action + log_prob[:, None]).sum()

    value, gradient = jax.value_and_grad(total)(jnp.array([[40.0], [-40.0]]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_normals_are_normal(library):
    ns = namespace(library)
    uniforms = [ns.xp.asarray(u) for u in np.random.default_rng(0).random((4, 20_000), np.float32)]
    normals = np.asarray(standard_normals(ns, uniforms))
    assert normals.shape == (20_000, 2)
    for component in normals.T:
        assert scipy.stats.kstest(component, "norm").pvalue > 0.01


def test_action_range_reaches_the_edges_and_no_further():
    space = gymnasium.spaces.Box(np.float32([[-1, 0]]), np.float32([[3, 1]]), dtype=np.float32)
    reach = ActionRange(space)
    flat = np.float32([[-1, 1], [0, 0], [-5, 5]])
    actions = reach.to_env(NS, flat)
    np.testing.assert_allclose(actions, [[[-1, 1]], [[1, 0.5]], [[-1, 1]]])
    np.testing.assert_allclose(reach.from_env(actions), [[-1, 1], [0, 0], [-1, 1]])
    free = ActionRange(gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32))
    np.testing.assert_array_equal(free.to_env(NS, flat), flat)
