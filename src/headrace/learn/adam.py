# SPDX-License-Identifier: Apache-2.0
"""Adam (Kingma and Ba, 2015), and the slow averages that off-policy targets are.

Written out, since an update of small networks is made of such loops: bias corrections are two
numbers a step, and what a parameter needs is read once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """What is remembered of the gradients so far; trees like the parameters'."""

    mean: Any
    square: Any
    count: Array
    """Steps taken, float32."""


def tree_map(function: Any, tree: Any) -> Any:
    """A function of every array in nested tuples: what `jax.tree.map` is, without JAX."""
    if isinstance(tree, tuple):
        parts = [tree_map(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return function(tree)


def no_steps(params: Any) -> Adam:
    """Before the first."""
    zeros = tree_map(np.zeros_like, params)
    return Adam(zeros, tree_map(np.copy, zeros), np.zeros((), np.float32))


def step(params: Any, adam: Adam, gradient: Any, learning_rate: Array | float) -> tuple[Any, Adam]:
    """Parameters after one step against the gradient. JAX arrays."""
    import jax
    import jax.numpy as jnp

    count = adam.count + 1
    unbias_mean = learning_rate / (1 - MEAN_DECAY**count)
    unbias_square = 1 / (1 - SQUARE_DECAY**count)

    def moved(param: Array, mean: Array, square: Array) -> Array:
        return param - unbias_mean * mean / (jnp.sqrt(square * unbias_square) + EPSILON)

    mean = jax.tree.map(lambda m, g: MEAN_DECAY * m + (1 - MEAN_DECAY) * g, adam.mean, gradient)
    square = jax.tree.map(
        lambda s, g: SQUARE_DECAY * s + (1 - SQUARE_DECAY) * g * g, adam.square, gradient
    )
    return jax.tree.map(moved, params, mean, square), Adam(mean, square, count)


def follow(target: Any, params: Any, rate: Array | float) -> Any:
    """Targets moved by this share of the way to the parameters. JAX arrays."""
    import jax

    return jax.tree.map(lambda slow, fast: slow + rate * (fast - slow), target, params)
