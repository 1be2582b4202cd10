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
Rows = Callable[[Array], Array]


class Namespace(ABC):
    """One array library."""

    name: str
    xp: Any
    word: Any
    """The dtype of 32-bit words: additions and products wrap."""
    chunk: int = 1 << 13
    """Elements that an operation is best given at a time."""

    def words(self, value: Array) -> Array:
        """Integers as words."""
        return self.xp.astype(value, self.word)

    def constant(self, value: int) -> Any:
        """A word of a known value, to calculate with."""
        return np.uint32(value)

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

    def repeat(self, times: int, body: Callable[[Any, Tree], Tree], start: Tree) -> Tree:
        """`body(number, tree)` for the numbers 0, 1, ... `times` - 1, from one to the next."""
        tree = start
        for number in range(times):
            tree = body(number, tree)
        return tree

    def scan(
        self,
        body: Callable[[Tree, Tree], tuple[Tree, Array]],
        start: Tree,
        rows: Tree,
        reverse: bool = False,
    ) -> Array:
        """`carry, result = body(carry, row)` from row to row, or from the last one back.

        Gives the results, one behind the other.
        """
        numbers = range(len(rows[0]))
        carry, results = start, [None] * len(numbers)
        for number in reversed(numbers) if reverse else numbers:
            carry, results[number] = body(carry, tuple(part[number] for part in rows))
        return self.xp.stack(results)

    @abstractmethod
    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """The high and the low word of a product of words."""

    @abstractmethod
    def when_any(self, mask: Array, then: Callable[[], Tree], otherwise: Tree) -> Tree:
        """`then()` if the mask is set anywhere. `then()` must equal `otherwise` if it is not."""

    @abstractmethod
    def by_rows(self, function: Callable[[Array], Array], rows: Array) -> Array:
        """The function of one row after the other: what it needs is there for one at a time."""

    @abstractmethod
    def replace(self, mask: Array, make: Callable[[Rows], Tree], current: Tree) -> Tree:
        """`current` with the rows where `mask` is set replaced by those of `make`.

        `make(rows)` builds new rows from inputs that it passes through `rows`, which picks those
        that are wanted, or all of them.
        """


class _Eager(Namespace):
    """Rows are replaced by their positions: work is done only for those that need it."""

    def when_any(self, mask: Array, then: Callable[[], Tree], otherwise: Tree) -> Tree:
        """A branch."""
        return then() if bool(mask.any()) else otherwise

    def by_rows(self, function: Callable[[Array], Array], rows: Array) -> Array:
        """A loop."""
        return self.xp.stack([function(row) for row in rows])

    def replace(self, mask: Array, make: Callable[[Rows], Tree], current: Tree) -> Tree:
        """By fancy indexing."""
        where = self.positions(mask)

        def put(old: Array, new: Array) -> Array:
            out = self.copy(old)
            out[where] = new
            return out

        return self.map(put, current, make(lambda array: array[where]))

    @abstractmethod
    def positions(self, mask: Array) -> tuple[Array, ...]:
        """Where the mask is set: indices on each of its axes."""

    @abstractmethod
    def copy(self, array: Array) -> Array:
        """The same in memory of its own."""


class NumPy(_Eager):
    """The host's own."""

    name = "numpy"
    xp = np
    word = np.uint32

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 64-bit integers."""
        product = a.astype(np.uint64) * np.uint64(multiplier)
        return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)

    def positions(self, mask: Array) -> tuple[Array, ...]:
        """By `nonzero`."""
        return mask.nonzero()

    def copy(self, array: Array) -> Array:
        """By `copy`."""
        return array.copy()


class Torch(_Eager):
    """Eager tensors; words are signed."""

    name = "torch"

    def __init__(self) -> None:
        try:
            import array_api_compat.torch as xp
            import torch
        except ImportError as error:
            raise ExtraMissingError("torch", "torch") from error
        self.xp = xp
        self.word = torch.int32

    def constant(self, value: int) -> Any:
        """The signed number of the same bits."""
        return value - (1 << 32) if value >= 1 << 31 else value

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 64-bit integers; their overflow keeps the bits."""
        torch = self.xp
        product = (torch.astype(a, torch.int64) & 0xFFFFFFFF) * multiplier
        return torch.astype(product >> 32, self.word), torch.astype(product, self.word)

    def positions(self, mask: Array) -> tuple[Array, ...]:
        """By `nonzero`."""
        return mask.nonzero(as_tuple=True)

    def copy(self, array: Array) -> Array:
        """By `clone`."""
        return array.clone()


class CompiledTorch(Torch):
    """A compiled program that cannot branch on values: every row is computed, and one is chosen."""

    def when_any(self, mask: Array, then: Callable[[], Tree], otherwise: Tree) -> Tree:
        """No branch."""
        return then()

    def replace(self, mask: Array, make: Callable[[Rows], Tree], current: Tree) -> Tree:
        """By a choice over all rows."""
        return self.where(mask, make(lambda array: array), current)


class Jax(Namespace):
    """Traced: rows are chosen, not branched on; nothing is computed where no row is wanted."""

    name = "jax"
    chunk = 1 << 62  # XLA divides the work itself

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax = jax
        self.xp = jnp
        self.word = jnp.uint32

    def repeat(self, times: int, body: Callable[[Any, Tree], Tree], start: Tree) -> Tree:
        """By a loop: XLA computes a long chain anew for each of its results."""
        return self.jax.lax.fori_loop(0, times, body, start, unroll=5)

    def scan(
        self,
        body: Callable[[Tree, Tree], tuple[Tree, Array]],
        start: Tree,
        rows: Tree,
        reverse: bool = False,
    ) -> Array:
        """By XLA's own."""
        return self.jax.lax.scan(body, start, rows, reverse=reverse)[1]

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """By 64-bit integers, which JAX has where they are asked for."""
        with self.jax.enable_x64(True):
            product = a.astype(self.xp.uint64) * np.uint64(multiplier)
            high = (product >> np.uint64(32)).astype(self.word)
            return high, product.astype(self.word)

    def when_any(self, mask: Array, then: Callable[[], Tree], otherwise: Tree) -> Tree:
        """One condition for the whole batch."""
        return self.jax.lax.cond(mask.any(), then, lambda: otherwise)

    def by_rows(self, function: Callable[[Array], Array], rows: Array) -> Array:
        """A loop in the program."""
        return self.jax.lax.map(function, rows)

    def replace(self, mask: Array, make: Callable[[Rows], Tree], current: Tree) -> Tree:
        """By a choice over all rows."""
        return self.where(mask, make(lambda array: array), current)


@cache
def namespace(name: str) -> Namespace:
    """By name: "numpy", "jax", "torch", or "torch-compile"."""
    return {"numpy": NumPy, "jax": Jax, "torch": Torch, "torch-compile": CompiledTorch}[name]()
