# SPDX-License-Identifier: Apache-2.0
"""Large batches in blocks: what a gradient keeps of a block stays in the processor's caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BLOCK = 1024
"""Rows. A smaller one costs more in adding up gradients than it gains."""


def mean_over_blocks(function: Callable[[Any], Any], rows: Any) -> Any:
    """A tree of means over rows [B, ...], computed block by block where B is several blocks.

    JAX arrays; the sums are taken in another order than over all rows at once.
    """
    import jax
    import jax.numpy as jnp

    count = jax.tree.leaves(rows)[0].shape[0]
    if count <= BLOCK or count % BLOCK:
        return function(rows)
    blocks = jax.tree.map(lambda part: part.reshape((-1, BLOCK, *part.shape[1:])), rows)

    def one(sums: Any, block: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, sums, function(block)), None

    shapes = jax.eval_shape(function, jax.tree.map(lambda part: part[0], blocks))
    zeros = jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), shapes)
    sums, _ = jax.lax.scan(one, zeros, blocks)
    return jax.tree.map(lambda total: total * (BLOCK / count), sums)
