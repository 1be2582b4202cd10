# SPDX-License-Identifier: Apache-2.0
"""Networks: the same numbers from NumPy and JAX, against convolutions and products done plainly."""

import gymnasium
import jax
import numpy as np
import pytest

from headrace.envs.array.namespace import namespace
from headrace.learn.convolution import Convolutional, Residual, convolve
from headrace.learn.networks import Dense, Mlp, mlp_for, orthogonal

NS, JAX = namespace("numpy"), namespace("jax")
CHANCE = np.random.default_rng(0)


def images(*shape):
    return CHANCE.integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("network", "obs"),
    [
        (Mlp(12, (8, 16)), CHANCE.normal(size=(5, 3, 4)).astype(np.float32)),
        (Mlp(12, (8,), "relu"), images(5, 12)),
        (Convolutional((84, 84, 4)), images(2, 84, 84, 4)),
        (Convolutional((4, 84, 84)), images(2, 4, 84, 84)),
        (Residual((8, 8, 20), 16, 2), images(2, 8, 8, 20)),
    ],
)
def test_numpy_and_jax_give_the_same_features(network, obs):
    params = network.init(np.random.default_rng(3))
    plain = network.apply(NS, params, obs)
    assert plain.dtype == np.float32
    assert plain.shape == (len(obs), network.features)
    compiled = jax.jit(lambda params, obs: network.apply(JAX, params, obs))(params, obs)
    np.testing.assert_allclose(plain, compiled, rtol=1e-3, atol=1e-3)
    again = network.init(np.random.default_rng(3))
    jax.tree.map(np.testing.assert_array_equal, params, again)


def test_a_number_that_names_something_has_an_input_of_its_own():
    network = mlp_for(gymnasium.spaces.Discrete(3, start=5), (2,), "tanh")
    params = network.init(np.random.default_rng(0))
    features = network.apply(NS, params, np.array([7, 5]))
    np.testing.assert_allclose(features, np.tanh(params[0].weight[[2, 0]]), rtol=1e-6)


@pytest.mark.parametrize(("stride", "same"), [(1, False), (2, False), (1, True)])
@pytest.mark.parametrize("ns", [NS, JAX], ids=["numpy", "jax"])
def test_convolution_is_the_sum_that_defines_it(ns, stride, same):
    x = CHANCE.normal(size=(2, 6, 7, 3)).astype(np.float32)
    kernel = CHANCE.normal(size=(3, 3, 3, 4)).astype(np.float32)
    bias = CHANCE.normal(size=4).astype(np.float32)
    got = np.asarray(convolve(ns, Dense(kernel, bias), ns.xp.asarray(x), stride, same))
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))) if same else x
    wanted = np.zeros_like(got)
    for b, i, j, c in np.ndindex(*wanted.shape):
        window = wide[b, i * stride : i * stride + 3, j * stride : j * stride + 3]
        wanted[b, i, j, c] = (window * kernel[..., c]).sum() + bias[c]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (3, 3, 2, 4), (3, 3, 2, 40)])
def test_orthogonal_weights_are_orthogonal(shape):
    weight = orthogonal(np.random.default_rng(0), shape, 2.0).reshape(-1, shape[-1])
    few = weight if weight.shape[0] < weight.shape[1] else weight.T
    np.testing.assert_allclose(few @ few.T, 4 * np.eye(len(few)), atol=1e-5)


def test_a_residual_network_begins_without_its_blocks():
    obs = images(2, 8, 8, 20)
    deep, shallow = Residual((8, 8, 20), 16, 3), Residual((8, 8, 20), 16, 0)
    params = deep.init(np.random.default_rng(0))
    np.testing.assert_allclose(
        deep.apply(NS, params, obs),
        shallow.apply(NS, params._replace(blocks=()), obs),
    )
