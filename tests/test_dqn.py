"""DQN: its equations against NumPy, exploration, masks."""

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

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.errors import HeadraceError
from headrace.learn.dqn import Acting, Config, Dqn
from headrace.policy import PolicyKey

CONFIG = Config(hidden=(8, 8))


def made(spec, **config):
    dqn = Dqn(spec, Config(hidden=(8, 8), **config))
    begin = dqn.init(3)
    return dqn, begin._replace(params=shaken(begin.params), target=shaken(begin.target, 2))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_target(double, masked):
    spec = discrete_spec(masked=masked)
    dqn, state = made(spec, double=double)
    batch = transitions(spec, 64)
    got = dqn.target(state.params, state.target, batch)
    judge = network(state.params if double else state.target, batch.next_obs)
    if masked:
        legal = np.unpackbits(batch.next_mask, axis=1, count=5, bitorder="little")
        judge = np.where(legal, judge, -np.inf)
    best = judge.argmax(axis=1)
    value = network(state.target, batch.next_obs)[np.arange(64), best]
    np.testing.assert_allclose(got, batch.reward + batch.discount * value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("huber", [0.0, 0.7])
def test_loss_and_gradient(huber):
    spec = discrete_spec(first=2)
    dqn, state = made(spec, huber=huber)
    batch = transitions(spec, 64)
    target = np.random.default_rng(1).standard_normal(64).astype(np.float32)

    def numpy_loss(params):
        value = network(params, batch.obs)[np.arange(64), batch.action - 2]
        away = np.abs(value - target)
        assert (away > 0.7).any()
        linear = huber * away - 0.5 * huber**2
        return np.where((away > huber) & (huber > 0), linear, 0.5 * away**2).mean()

    (got, mean), gradient = jax.value_and_grad(dqn.loss, has_aux=True)(
        state.params, batch.obs, batch.action, target
    )
    np.testing.assert_allclose(got, numpy_loss(state.params), rtol=1e-4)
    value = network(state.params, batch.obs)[np.arange(64), batch.action - 2]
    np.testing.assert_allclose(mean, value.mean(), rtol=1e-4)
    assert_gradient(gradient, numpy_loss, state.params)


def test_target_follows_and_exploration_falls():
    spec = discrete_spec()
    dqn, state = made(spec, epsilon_updates=4, first_epsilon=0.8, last_epsilon=0.2)
    update = jax.jit(dqn.update)
    shares = []
    for _ in range(6):
        shares.append(float(dqn.acting(state).epsilon))
        after, _ = update(state, transitions(spec, 32))
        want = jax.tree.map(
            lambda slow, fast: 0.99 * slow + 0.01 * fast, state.target, after.params
        )
        assert_trees_close(after.target, want, rtol=1e-5, atol=1e-6)
        state = after
    np.testing.assert_allclose(shares, [0.8, 0.65, 0.5, 0.35, 0.2, 0.2], rtol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_exploration_is_uniform_among_the_legal(masked):
    spec = discrete_spec(masked=masked, first=1)
    dqn, state = made(spec)
    obs = np.tile(np.float32([0.1, 0.2, 0.3]), (4000, 1))
    legal = np.array([1, 0, 1, 1, 0] if masked else [1] * 5, bool)
    mask = np.tile(np.packbits(legal, bitorder="little"), (4000, 1)) if masked else None
    best = np.where(legal, network(state.params, obs[0]), -np.inf).argmax()
    for epsilon in (0.0, 0.5, 1.0):
        acting = Acting(state.params, np.float32(epsilon))
        actions = []
        for library in ("numpy", "jax"):
            key = PolicyKey(identify(namespace(library), 4000, 7), np.uint32(3))
            action, _ = dqn.policy(library).apply(acting, obs, mask, key)
            actions.append(np.asarray(action) - 1)
        np.testing.assert_array_equal(*actions)
        share = np.bincount(actions[0], minlength=5) / 4000
        want = epsilon * legal / legal.sum()
        want[best] += 1 - epsilon
        np.testing.assert_allclose(share, want, atol=0.04)
        assert not share[~legal].any()
    key = PolicyKey(identify(namespace("numpy"), 4000, 7), np.uint32(3))
    action, _ = dqn.policy("numpy", deterministic=True).apply(acting, obs, mask, key)
    assert (action - 1 == best).all()


def test_wrong_spaces():
    with pytest.raises(HeadraceError, match="DQN needs discrete actions"):
        Dqn(continuous_spec(), CONFIG)
