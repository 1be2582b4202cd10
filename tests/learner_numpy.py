"""Plain NumPy rewrites, in float64, of what the learners compute: their oracles."""

import gymnasium
import jax
import numpy as np
import pytest

from headrace.envs.spec import EnvEntry, EnvSpec
from headrace.learn.algorithm import Transitions

BOX = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
TORQUES = gymnasium.spaces.Box(np.array([-2, -1], np.float32), np.array([2, 3], np.float32))


def continuous_spec():
    return EnvSpec(EnvEntry("Tiny-v0"), BOX, TORQUES, None)


def discrete_spec(count=5, masked=False, first=0):
    space = gymnasium.spaces.Discrete(count, start=first)
    return EnvSpec(EnvEntry("Tiny-v0"), BOX, space, None, masked=masked)


def transitions(spec, count, seed=0):
    """Random ones, about a third of which end an episode."""
    generator = np.random.default_rng(seed)
    space = spec.action_space
    if isinstance(space, gymnasium.spaces.Box):
        action = generator.uniform(space.low, space.high, (count, *space.shape)).astype(np.float32)
    else:
        action = generator.integers(space.start, space.start + space.n, count).astype(np.uint8)
    mask = next_mask = None
    if spec.masked:
        legal = generator.random((2, count, int(space.n))) < 0.5
        legal[..., 1] = True
        mask, next_mask = np.packbits(legal, axis=-1, bitorder="little")
    return Transitions(
        obs=generator.standard_normal((count, 3)).astype(np.float32),
        action=action,
        reward=generator.standard_normal(count).astype(np.float32),
        discount=np.where(generator.random(count) < 0.3, 0, 0.97).astype(np.float32),
        next_obs=generator.standard_normal((count, 3)).astype(np.float32),
        mask=mask,
        next_mask=next_mask,
    )


def network(params, x):
    """Rectified layers and a linear head."""
    x = np.asarray(x, np.float64)
    for weight, bias in params.body:
        x = np.maximum(x @ np.asarray(weight, np.float64) + bias, 0)
    return x @ np.asarray(params.head.weight, np.float64) + params.head.bias


def shaken(tree, seed=0, scale=0.3):
    """Arrays with noise on them, so that no bias and no head is special."""
    generator = np.random.default_rng(seed)
    return jax.tree.map(
        lambda a: (a + scale * generator.standard_normal(a.shape)).astype(a.dtype), tree
    )


def assert_gradient(gradient, function, params):
    """That it is the slope of a float64 function in some random directions."""
    params = jax.tree.map(lambda a: np.asarray(a, np.float64), params)
    for seed in range(3):
        direction = shaken(jax.tree.map(np.zeros_like, params), seed, 1.0)
        slope = _slope(function, params, direction)
        parts = jax.tree.map(lambda g, d: float((g * d).sum()), gradient, direction)
        assert sum(jax.tree.leaves(parts)) == pytest.approx(slope, rel=1e-3, abs=1e-4)


def _slope(function, params, direction, step=1e-7):
    ahead = jax.tree.map(lambda p, d: p + step * d, params, direction)
    behind = jax.tree.map(lambda p, d: p - step * d, params, direction)
    return (function(ahead) - function(behind)) / (2 * step)


def assert_trees_equal(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def assert_trees_close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), a, b)
