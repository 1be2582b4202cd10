# SPDX-License-Identifier: Apache-2.0
"""A ring of transitions in the device's memory: pure, part of a compiled program's state.

A transition is a row of one matrix, or of two: numbers as float32, and bytes (planes, images,
masks) as they are. So a batch is gathered by one read a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array, namespace
from headrace.learn import chance
from headrace.learn.algorithm import Transitions


class Ring(NamedTuple):
    """The rows, and where in them the story is."""

    numbers: Array
    """[capacity, width] float32."""
    raw: Array
    """[capacity, width] uint8; no columns where no field is of bytes."""
    position: Array
    """int32: the row that is written next."""
    size: Array
    """int32: how many rows hold something."""
    draws: Array
    """One word: how many batches were drawn."""
    seed: Array
    """Two words."""


@dataclass(frozen=True)
class Field:
    """Where a transition's field lies in its row."""

    shape: tuple[int, ...]
    dtype: np.dtype
    first: int

    @property
    def columns(self) -> slice:
        """Of the matrix of its kind."""
        return slice(self.first, self.first + int(np.prod(self.shape)))


class Layout:
    """How transitions of one environment become rows, and rows transitions again.

    Whole numbers are kept as float32: exact up to 2^24, which no discrete action exceeds.
    """

    def __init__(self, example: Transitions):
        """`example` is one transition, or anything with its shapes and dtypes."""
        self.fields: dict[str, Field] = {}
        self._widths = {True: 0, False: 0}
        for name, part in example._asdict().items():
            if part is None:
                continue
            field = Field(tuple(part.shape), np.dtype(part.dtype), self._widths[_is_raw(part)])
            self.fields[name] = field
            self._widths[_is_raw(part)] = field.columns.stop

    def empty(self, capacity: int, seed: int) -> Ring:
        """NumPy arrays; nothing in them."""
        return Ring(
            np.zeros((capacity, self._widths[False]), np.float32),
            np.zeros((capacity, self._widths[True]), np.uint8),
            np.zeros((), np.int32),
            np.zeros((), np.int32),
            np.zeros((), np.uint32),
            chance.seed_words(seed),
        )

    def pack(self, batch: Transitions) -> tuple[Array, Array]:
        """The rows [B, width] of both kinds."""
        import jax.numpy as jnp

        rows: dict[bool, list[Any]] = {False: [], True: []}
        count = batch.reward.shape[0]
        for name in self.fields:
            part = getattr(batch, name).reshape((count, -1))
            raw = _is_raw(part)
            rows[raw].append(part if raw else part.astype(jnp.float32))
        raw_rows = jnp.concatenate(rows[True], 1) if rows[True] else jnp.zeros((count, 0), np.uint8)
        return jnp.concatenate(rows[False], axis=1), raw_rows

    def unpack(self, numbers: Array, raw: Array) -> Transitions:
        """What `pack` was given."""
        out = {}
        for name, field in self.fields.items():
            columns = (raw if _is_raw(field) else numbers)[:, field.columns]
            out[name] = columns.reshape((-1, *field.shape)).astype(field.dtype)
        return Transitions(**out)

    def insert(self, ring: Ring, batch: Transitions) -> Ring:
        """The ring with a batch written over its oldest rows."""
        import jax.numpy as jnp
        from jax import lax

        capacity, count = ring.numbers.shape[0], batch.reward.shape[0]
        if count > capacity:
            raise ValueError(f"{count} transitions do not fit into a ring of {capacity}")
        if capacity % count == 0:  # whole batches never run over the end: they move in one piece

            def put(rows: Array, new: Array) -> Array:
                return lax.dynamic_update_slice_in_dim(rows, new, ring.position, axis=0)
        else:
            where = (ring.position + jnp.arange(count)) % capacity

            def put(rows: Array, new: Array) -> Array:
                return jnp.asarray(rows).at[where].set(new, unique_indices=True)

        numbers, raw = self.pack(batch)
        return ring._replace(
            numbers=put(ring.numbers, numbers),
            raw=put(ring.raw, raw),
            position=(ring.position + count) % capacity,
            size=jnp.minimum(ring.size + count, capacity),
        )

    def sample(self, ring: Ring, count: int) -> tuple[Ring, Transitions]:
        """A batch drawn uniformly, with replacement, from what the ring holds."""
        import jax.numpy as jnp

        # The remainder favours small rows by less than capacity / 2^32.
        word = chance.words(namespace("jax"), ring.seed, ring.draws, chance.REPLAY, count)
        rows = (word % ring.size.astype(np.uint32)).astype(np.int32)
        numbers, raw = (
            jnp.asarray(matrix).at[rows].get(mode="promise_in_bounds")
            for matrix in (ring.numbers, ring.raw)
        )
        return ring._replace(draws=ring.draws + np.uint32(1)), self.unpack(numbers, raw)


def _is_raw(part: Any) -> bool:
    return part.dtype == np.uint8
