"""The native towers and move policies against XLA's and NumPy's own products, and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learner_numpy import assert_trees_close, assert_trees_equal

import headrace
from headrace import _native
from headrace.envs.array.namespace import namespace
from headrace.learn import native_moves, native_residual
from headrace.learn.actor_critic import BoardActorCritic
from headrace.learn.convolution import Residual
from headrace.learn.ppo import Config, Ppo
from headrace.train.compiled import CompiledTrainer

NS, JAX = namespace("numpy"), namespace("jax")
FORMS = [(20, 32, 2, 70), (119, 16, 1, 5), (1, 48, 3, 33), (16, 64, 0, 1)]
"""Planes, channels, blocks, boards."""
native = pytest.mark.skipif(not _native.has_towers(), reason="this processor does not run them")


def noisy(generator, tree):
    """With something in every number, so that no gradient is 0."""

    def one(leaf):
        return np.float32(leaf + 0.05 * generator.standard_normal(leaf.shape))

    return jax.tree.map(one, tree)


def some_boards(generator, boards, planes):
    pieces = (generator.random((boards, 8, 8, planes)) < 0.1).astype(np.uint8)
    pieces[..., -1] = generator.integers(0, 256, (boards, 1, 1))  # a count, over the whole board
    return pieces


def relative(ours, theirs):
    return np.linalg.norm(np.subtract(ours, theirs)) / np.linalg.norm(theirs)


@pytest.fixture
def by_xla(monkeypatch):
    """Everything without the native core, from then on."""

    def switch():
        for module in (native_residual, native_moves):
            monkeypatch.setattr(module, "runs", lambda *_: False)

    return switch


@native
@pytest.mark.parametrize(("planes", "channels", "blocks", "boards"), FORMS)
def test_features_and_gradients(by_xla, planes, channels, blocks, boards):
    """Groups of boards, what is left of them, and single ones; planes beside whole vectors."""
    generator = np.random.default_rng(0)
    net = Residual((8, 8, planes), channels, blocks)
    params = noisy(generator, net.init(generator))
    obs = some_boards(generator, boards, planes)
    slopes = np.float32(generator.standard_normal((boards, 8, 8, channels)))

    def features_and_gradients(params, obs):
        features, back = jax.vjp(lambda params: net.map(JAX, params, obs), params)
        return features, back(slopes)[0]

    def found():
        return jax.jit(features_and_gradients)(params, obs)

    assert native_residual.runs(net.shape, channels)
    features, gradients = found()
    alone = jax.jit(lambda params, obs: net.map(JAX, params, obs))(params, obs)
    np.testing.assert_array_equal(features, alone)  # whatever is kept for a gradient
    assert relative(features, net.map(NS, params, obs)) < 3e-6
    by_xla()
    for ours, theirs in zip(jax.tree.leaves(gradients), jax.tree.leaves(found()[1]), strict=True):
        assert relative(ours, theirs) < 1e-5


@native
def test_gradients_are_differences():
    generator = np.random.default_rng(1)
    net = Residual((8, 8, 3), 16, 1)
    params = noisy(generator, net.init(generator))
    obs = some_boards(generator, 2, 3)
    weights = generator.standard_normal((2, 8, 8, 16))
    leaves, tree = jax.tree.flatten(params)

    def total(leaves):
        """In float64, by NumPy."""
        return float((net.map(NS, tree.unflatten(leaves), obs.astype(np.float64)) * weights).sum())

    _, back = jax.vjp(lambda params: net.map(JAX, params, obs), params)
    gradients = jax.tree.leaves(back(jnp.asarray(weights, jnp.float32))[0])
    wide = [leaf.astype(np.float64) for leaf in leaves]
    for number, leaf in enumerate(wide):
        for at in generator.choice(leaf.size, 6, replace=False):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [other.copy() for other in wide]
                moved[number].flat[at] += step
                ends.append(total(moved))
            want = (ends[0] - ends[1]) / 2e-6
            got = np.asarray(gradients[number]).flat[at]
            assert got == pytest.approx(want, rel=2e-3, abs=2e-3)


@native
def test_the_same_bits_again_and_in_other_batches():
    generator = np.random.default_rng(2)
    net = Residual((8, 8, 20), 32, 2)
    params = noisy(generator, net.init(generator))
    obs = some_boards(generator, 150, 20)
    features = jax.jit(lambda params, obs: net.map(JAX, params, obs))
    program = jax.jit(
        jax.grad(lambda params, obs: (net.map(JAX, params, obs) ** 2).sum()),
    )
    whole, first = features(params, obs), program(params, obs)
    for _ in range(10):
        assert_trees_equal(program(params, obs), first)
    for begin, end in ((0, 1), (3, 50), (50, 150)):
        np.testing.assert_array_equal(features(params, obs[begin:end]), whole[begin:end])


@native
def test_a_nan_is_seen():
    net = Residual((8, 8, 4), 16, 1)
    params = net.init(np.random.default_rng(0))
    obs = np.ones((6, 8, 8, 4), np.float32)
    obs[4, 3, 3, 1] = np.nan
    features = np.asarray(net.map(JAX, params, obs))
    assert np.isnan(features[4, 2:5, 2:5]).all()
    assert np.isfinite(np.delete(features, 4, axis=0)).all()


def test_other_forms_go_by_xla():
    generator = np.random.default_rng(0)
    for shape, channels in (((8, 8, 3), 20), ((5, 8, 3), 16)):
        assert not native_residual.runs(shape, channels)
        net = Residual(shape, channels, 1)
        params = noisy(generator, net.init(generator))
        obs = generator.integers(0, 2, (3, *shape)).astype(np.uint8)
        assert relative(net.map(JAX, params, obs), net.map(NS, params, obs)) < 1e-5


def some_masks(generator, boards):
    """Of few moves, of one, of all, and of none."""
    bits = generator.random((boards, 4672)) < 0.01
    bits[1], bits[2], bits[3] = np.arange(4672) == 4000, True, False
    action = np.array([np.flatnonzero(row)[-1] if row.any() else 7 for row in bits], np.int32)
    return np.packbits(bits, axis=-1, bitorder="little"), action


@native
def test_legal_moves_are_a_categorical(by_xla):
    generator = np.random.default_rng(3)
    network = BoardActorCritic(Residual((8, 8, 20), 32, 1), 4672)
    params, boards = noisy(generator, network.init(generator)), 70
    obs, (mask, action) = some_boards(generator, boards, 20), some_masks(generator, boards)
    weights = np.float32(generator.standard_normal((3, boards)))
    uniform = np.float32(generator.random(boards))
    uniform[:4] = [0, 1 - 2**-24, 0.5, 0]

    def loss(params):
        policy, value = network.policy(JAX, params, obs, mask)
        told = (policy.log_prob(action), policy.entropy(), value)
        total = sum((a * b).sum() for a, b in zip(weights, told, strict=True))
        return total, (told, policy.sample(uniform), policy.mode())

    def found():
        return jax.jit(jax.value_and_grad(loss, has_aux=True))(params)

    (_, (told, drawn, mode)), gradient = found()
    policy, _ = network.policy(NS, params, obs, mask)
    np.testing.assert_allclose(told[0], policy.log_prob(action), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(told[1], policy.entropy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(drawn, policy.sample(uniform))
    np.testing.assert_array_equal(mode, policy.mode())
    by_xla()
    (_, (wanted, _, _)), by_products = found()
    assert_trees_close(told, wanted, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(
        jax.tree.leaves(gradient._replace(log_std=())),
        jax.tree.leaves(by_products._replace(log_std=())),
        strict=True,
    ):
        assert relative(ours, theirs) < 1e-5


@native
def test_an_illegal_move_has_next_to_no_chance():
    network = BoardActorCritic(Residual((8, 8, 20), 16, 0), 4672)
    params = network.init(np.random.default_rng(0))
    mask = np.zeros((1, 584), np.uint8)
    mask[0, 5] = 6
    obs = np.zeros((1, 8, 8, 20), np.uint8)
    policy, _ = network.policy(JAX, params, obs, jnp.asarray(mask))
    assert float(policy.log_prob(jnp.array([40]))[0]) < -1e8
    assert int(policy.mode()[0]) in (41, 42)


@native
def test_training_is_that_by_xla(by_xla):
    """The same games; parameters go the same way but where gradients are next to nothing."""
    spec = headrace.spec("Chess-v0", observation="compact", start="mixed")
    config = Config(channels=16, blocks=1, epochs=2, minibatches=4, learning_rate=1e-4)
    ends, games = [], []
    for _ in range(2):
        trainer = CompiledTrainer(Ppo(spec, config), spec, num_envs=8, steps=8, seed=0)
        begin = jax.tree.map(np.array, trainer.acting().params)
        games.append(trainer.advance(2).episode_returns)
        ends.append(jax.tree.map(np.subtract, trainer.acting().params, begin))
        by_xla()
    np.testing.assert_array_equal(*games)
    ours, theirs = (np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(e)]) for e in ends)
    assert relative(ours, theirs) < 0.1
