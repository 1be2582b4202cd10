# SPDX-License-Identifier: Apache-2.0
"""What generation and update take inside one XLA program, by a clock that the program reads."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headrace import _native
from headrace.envs.array.namespace import Array

GENERATION, UPDATE = 0, 1
"""The phases of an iteration."""
_TARGET = "headrace_clock"


@cache
def _register() -> None:
    jax.devices("cpu")  # before XLA's first use targets are registered ahead of what they need
    jax.ffi.register_ffi_target(_TARGET, _native.xla_clock(), platform="cpu")


class Stopwatch(NamedTuple):
    """Carried through a program from phase to phase; it reads the clock on processors alone."""

    microseconds: Array
    """Of the clock, when the last phase ended: one word."""
    spent: Array
    """Seconds in each phase so far, [2] float32."""


def runs_on(device: Any) -> bool:
    """Whether programs of this device can read the clock."""
    return device.platform == "cpu"


def started(value: Any) -> tuple[Stopwatch, Any]:
    """At the moment when the value, a tree of arrays which passes on, is known."""
    value, now = _read(value)
    return Stopwatch(now, jnp.zeros(2, jnp.float32)), value


def phase_ended(watch: Stopwatch, phase: int, value: Any) -> tuple[Stopwatch, Any]:
    """At the moment when the value, a tree of arrays which passes on, is known."""
    value, now = _read(value)
    seconds = (now - watch.microseconds).astype(jnp.float32) * np.float32(1e-6)
    return Stopwatch(now, watch.spent.at[phase].add(seconds)), value


def _read(value: Any) -> tuple[Any, Array]:
    """The smallest of the arrays goes by way of the clock."""
    _register()
    leaves, form = jax.tree.flatten(value)
    at = min(range(len(leaves)), key=lambda i: leaves[i].size)
    leaf = leaves[at]
    call = jax.ffi.ffi_call(
        _TARGET,
        (jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), jax.ShapeDtypeStruct((), jnp.uint32)),
        has_side_effect=True,
        input_output_aliases={0: 0},
    )

    def unread(leaf: Array) -> tuple[Array, Array]:
        return leaf, jnp.zeros((), jnp.uint32)

    leaves[at], now = jax.lax.platform_dependent(leaf, cpu=call, default=unread)
    return jax.tree.unflatten(form, leaves), now
