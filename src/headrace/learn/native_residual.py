# SPDX-License-Identifier: Apache-2.0
"""Residual towers over boards by the native core inside XLA programs, with their gradients.

Winograd's products need a quarter of the multiplications that XLA's one large product of all
windows takes, and what lies between them stays in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace import _native
from headrace.envs.array.namespace import Array

_TARGET = "headrace_tower"


@cache
def _register() -> None:
    jax.devices("cpu")  # before XLA's first use targets are registered ahead of what they need
    for name, handler in _native.tower_handlers().items():
        jax.ffi.register_ffi_target(f"{_TARGET}_{name}", handler, platform="cpu")


def runs(shape: tuple[int, ...], channels: int) -> bool:
    """Whether this processor, the board and the channels, a multiple of 16, allow it."""
    fits = shape[:2] == (8, 8) and channels % 16 == 0
    return fits and jax.default_backend() == "cpu" and _native.has_towers()


@jax.custom_vjp
def tower(params: Any, x: Array) -> Array:
    """Features [B, 8, 8, channels] of boards [B, 8, 8, planes], which have no gradient (0).

    `params` has a `first` kernel [3, 3, planes, channels] and two for each of its `blocks`.
    """
    return _forward(params, x, keep=False)[0]


def _forward(params: Any, x: Array, keep: bool) -> Sequence[Array]:
    _register()
    leaves = jax.tree.leaves(params)
    layers = len(leaves) // 2
    shape = (*x.shape[:3], leaves[0].shape[-1])
    outputs = [jax.ShapeDtypeStruct(shape, jnp.float32)] * (layers if keep else 1)
    call = jax.ffi.ffi_call(f"{_TARGET}_forward", outputs)
    return call(x, *leaves, layers=np.int64(layers), keep=keep)


def _ahead(params: Any, x: Array) -> tuple[Array, Any]:
    outputs = _forward(params, x, keep=True)
    return outputs[-1], (params, x, outputs)


def _back(kept: Any, gradient: Array) -> tuple[Any, Array]:
    params, x, outputs = kept
    leaves, tree = jax.tree.flatten(params)
    shapes = [jax.ShapeDtypeStruct(leaf.shape, jnp.float32) for leaf in leaves]
    call = jax.ffi.ffi_call(f"{_TARGET}_backward", shapes)
    found = call(x, *leaves, *outputs, gradient, layers=np.int64(len(outputs)))
    return tree.unflatten(found), jnp.zeros_like(x)


tower.defvjp(_ahead, _back)
