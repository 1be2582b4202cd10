"""TD3: its equations against NumPy, and what happens only every other update."""

import jax
import numpy as np
import pytest
from learner_numpy import (
    assert_gradient,
    assert_trees_close,
    assert_trees_equal,
    continuous_spec,
    network,
    shaken,
    transitions,
)

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.learn.td3 import Config, Td3
from headrace.policy import PolicyKey

SPEC = continuous_spec()
BATCH = transitions(SPEC, 32)


@pytest.fixture(scope="module")
def td3():
    return Td3(SPEC, Config(hidden=(8, 8), target_rate=0.1))


@pytest.fixture(scope="module")
def state(td3):
    begin = td3.init(3)
    params = shaken(begin.actor.params)
    actor = begin.actor._replace(params=params, target=shaken(params, 4))
    params = shaken(begin.critic.params, 1)
    critic = begin.critic._replace(params=params, target=shaken(params, 2))
    return begin._replace(actor=actor, critic=critic)


def values(twins, obs, action):
    x = np.concatenate([obs, action], axis=1)
    return [network(twin, x)[:, 0] for twin in twins]


def test_critic_target(td3, state):
    noise = 3 * np.random.default_rng(5).standard_normal((32, 2)).astype(np.float32)
    got = td3.critic_target(state.critic.target, state.actor.target, BATCH, noise)
    action = np.tanh(network(state.actor.target, BATCH.next_obs)) + np.clip(0.2 * noise, -0.5, 0.5)
    assert (np.abs(0.2 * noise) > 0.5).any()
    assert (np.abs(action) > 1).any()
    least = np.minimum(*values(state.critic.target, BATCH.next_obs, np.clip(action, -1, 1)))
    np.testing.assert_allclose(got, BATCH.reward + BATCH.discount * least, rtol=1e-4, atol=1e-4)


def test_actor_loss_and_gradient(td3, state):
    def numpy_loss(params):
        action = np.tanh(network(params, BATCH.obs))
        return -values(state.critic.params, BATCH.obs, action)[0].mean()

    params = state.actor.params
    got, gradient = jax.value_and_grad(td3.actor_loss)(params, state.critic.params, BATCH.obs)
    np.testing.assert_allclose(got, numpy_loss(params), rtol=1e-4)
    assert_gradient(gradient, numpy_loss, params)


def test_actor_and_targets_move_every_other_update(td3, state):
    update = jax.jit(td3.update)
    first, _ = update(state, BATCH)
    second, _ = update(first, BATCH)
    want = jax.tree.map(
        lambda slow, fast: 0.9 * slow + 0.1 * fast,
        (state.critic.target, state.actor.target),
        (first.critic.params, first.actor.params),
    )
    got = (first.critic.target, first.actor.target)
    assert_trees_close(got, want, rtol=1e-5, atol=1e-6)
    assert_trees_equal(second.actor, first.actor)
    assert_trees_equal(second.critic.target, first.critic.target)
    assert np.any(second.critic.params[0].head.weight != first.critic.params[0].head.weight)


def test_parts_on_their_own_are_the_whole(td3, state):
    critic_program, actor_program = jax.jit(td3.update_critic), jax.jit(td3.update_actor)
    whole, critic, actor = state, state.critic, state.actor
    update = jax.jit(td3.update)
    for number in range(10):
        batch = transitions(SPEC, 32, number)
        word = np.uint32(number)
        moved, _ = critic_program(critic, actor.target, batch, state.seed, word)
        actor, _ = actor_program(actor, critic.params, batch.obs, word)
        critic = moved
        whole, _ = update(whole, batch)
    assert_trees_close((critic, actor), (whole.critic, whole.actor), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("deterministic", [False, True])
def test_numpy_and_jax_policies_agree(td3, state, deterministic):
    obs = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)
    actions = []
    for library in ("numpy", "jax"):
        key = PolicyKey(identify(namespace(library), 16, 7), np.uint32(3))
        policy = td3.policy(library, deterministic=deterministic)
        action, _ = policy.apply(td3.acting(state), obs, None, key)
        actions.append(np.asarray(action))
    assert all(SPEC.action_space.contains(action) for action in actions[0])
    np.testing.assert_allclose(*actions, rtol=1e-4, atol=1e-5)
