# SPDX-License-Identifier: Apache-2.0
"""What NumPy, torch and JAX do not have in common, behind one face.

An environment computes with `ns.xp`, the library's own (array-API) functions, which are the same in
all three. Here is the rest: 32-bit words, which torch has only as signed integers; the wide product
that Philox needs; and replacing a few rows of a batch, which each does best in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from headrace.errors import ExtraMissingError

Array = Any
Tree = Any


class Namespace(ABC):
    """One array library."""

    name: str
    xp: Any
    word: Any
    """The dtype of 32-bit words: additions and products wrap."""

    def words(self, value: Array) -> Array:
        """Integers as words."""
        return self.xp.astype(value, self.word)

    def constant(self, value: int) -> Array:
        """A word of a known value."""
        return self.xp.asarray(np.uint32(value), dtype=self.word)

    def shift_right(self, word: Array, places: int) -> Array:
        """A logical shift, whatever the sign of the library's words."""
        return (word >> places) & ((1 << (32 - places)) - 1) if places else word

    def to_float(self, value: Array) -> Array:
        """Numbers or masks as float32."""
        return self.xp.astype(value, self.xp.float32)

    def map(self, function: Callable[..., Array], *trees: Tree) -> Tree:
        """Apply a function to the arrays of (nested) tuples of the same form."""
        first = trees[0]
        if not isinstance(first, tuple):
            return function(*trees)
        parts = [self.map(function, *group) for group in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)

    def where(self, mask: Array, chosen: Tree, otherwise: Tree) -> Tree:
        """Choose between trees, row by row: the mask reaches over trailing event axes."""

        def pick(a: Array, b: Array) -> Array:
            wide = mask.reshape(mask.shape + (1,) * (b.ndim - mask.ndim))
            return self.xp.where(wide, a, b)

        return self.map(pick, chosen, otherwise)

    @abstractmethod
    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """The high and the low word of a product of words."""

    @abstractmethod
    def replace(self, mask: Array, make: Callable[[Callable[[Array], Array]], Tree],
                current: Tree) -> Tree:
        """`current` with the rows where `mask` is set replaced by those of `make`.

        `make(rows)` builds new rows from inputs that it passes through `rows`, which picks those that
        are wanted, or all of them.
        """


class NumPy(Namespace):
    """Rows are replaced by their positions: work is done only for those that need it."""

    name = "numpy"
    xp = np
    word = np.uint32

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 64-bit integers."""
        product = a.astype(np.uint64) * np.uint64(multiplier)
        return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)

    def replace(self, mask: Array, make: Callable[[Callable[[Array], Array]], Tree],
                current: Tree) -> Tree:
        """By fancy indexing."""
        if not mask.any():
            return current

        def put(old: Array, new: Array) -> Array:
            out = old.copy()
            out[mask] = new
            return out

        return self.map(put, current, make(lambda array: array[mask]))


class Torch(Namespace):
    """Eager or compiled: a compiled program cannot branch on values, and computes every row."""

    name = "torch"

    def __init__(self, compiled: bool = False):
        try:
            import array_api_compat.torch as xp
            import torch
        except ImportError as error:
            raise ExtraMissingError("torch", "torch") from error
        self.xp = xp
        self.word = torch.int32
        self.compiled = compiled

    def constant(self, value: int) -> Array:
        """The signed word of the same bits."""
        return self.xp.asarray(int(np.uint32(value).astype(np.int32)), dtype=self.word)

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 64-bit integers; their overflow keeps the bits."""
        torch = self.xp
        product = (torch.astype(a, torch.int64) & 0xFFFFFFFF) * multiplier
        return torch.astype(product >> 32, self.word), torch.astype(product, self.word)

    def replace(self, mask: Array, make: Callable[[Callable[[Array], Array]], Tree],
                current: Tree) -> Tree:
        """By positions where eager, by a choice over all rows where compiled."""
        if self.compiled:
            return self.where(mask, make(lambda array: array), current)
        if not bool(mask.any()):
            return current

        def put(old: Array, new: Array) -> Array:
            out = old.clone()
            out[mask] = new
            return out

        return self.map(put, current, make(lambda array: array[mask]))


class Jax(Namespace):
    """Traced: rows are chosen, not branched on; nothing is computed where no row is wanted."""

    name = "jax"

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax = jax
        self.xp = jnp
        self.word = jnp.uint32

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 16-bit limbs: JAX has no 64-bit integers unless asked globally."""
        low_m, high_m = multiplier & 0xFFFF, multiplier >> 16
        low_a, high_a = a & 0xFFFF, a >> 16
        low_low, high_low, low_high = low_a * low_m, high_a * low_m, low_a * high_m
        middle = (low_low >> 16) + (high_low & 0xFFFF) + (low_high & 0xFFFF)
        high = high_a * high_m + (high_low >> 16) + (low_high >> 16) + (middle >> 16)
        return high, a * self.constant(multiplier)

    def replace(self, mask: Array, make: Callable[[Callable[[Array], Array]], Tree],
                current: Tree) -> Tree:
        """Under one condition for the whole batch."""
        return self.jax.lax.cond(
            mask.any(),
            lambda: self.where(mask, make(lambda array: array), current),
            lambda: current,
        )


@cache
def namespace(name: str) -> Namespace:
    """By name: "numpy", "jax", "torch", or "torch-compile"."""
    if name == "numpy":
        return NumPy()
    if name == "jax":
        return Jax()
    return Torch(compiled=name == "torch-compile")
