# SPDX-License-Identifier: Apache-2.0
"""Rectified networks by the native core inside XLA programs, with their gradients.

A network goes through all of its layers a block of rows at a time, so that what lies between them
stays in the cache; XLA's own products, one for each layer and direction, reach half as much of what
the processor can do. With `bf16` the products between hidden layers take bfloat16 numbers and sum
them in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from headrace import _native
from headrace.envs.array.namespace import Array
from headrace.learn.networks import Dense, dense

Precision = Literal["f32", "bf16"]
Layers = tuple[Dense, ...]
_TARGET = "headrace_mlp"


@cache
def _register() -> None:
    jax.devices("cpu")  # before XLA's first use targets are registered ahead of what they need
    for name, handler in _native.mlp_handlers().items():
        jax.ffi.register_ffi_target(f"{_TARGET}_{name}", handler, platform="cpu")


def runs(layers: Layers, precision: Precision) -> bool:
    """Whether this processor and these widths allow it: hidden ones are multiples of 32."""
    hidden = [layer.weight.shape[1] for layer in layers[:-1]]
    if not 1 <= len(hidden) < 8 or any(width % 32 for width in hidden):
        return False
    return jax.default_backend() == "cpu" and _native.has_mlp(precision == "bf16")


def outputs(
    nets: tuple[Layers, ...],
    x: Array,
    precision: Precision = "f32",
    frozen: bool = False,
    first_input: int = 0,
) -> Array:
    """What `mlps` gives, by XLA's own products in float32 where the native core does not run."""
    if runs(nets[0], precision):
        return mlps(nets, x, precision, frozen, first_input)
    if frozen:
        nets = jax.lax.stop_gradient(nets)

    def one(layers: Layers) -> Array:
        hidden = x
        for layer in layers[:-1]:
            hidden = jnp.maximum(dense(layer, hidden), 0)
        return dense(layers[-1], hidden)

    return jnp.stack([one(layers) for layers in nets])


@partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def mlps(
    nets: tuple[Layers, ...],
    x: Array,
    precision: Precision = "f32",
    frozen: bool = False,
    first_input: int = 0,
) -> Array:
    """Outputs [nets, B, out] of networks of one form for the same inputs [B, in].

    All layers but the last are rectified. There is no gradient (0) of the parameters where they are
    `frozen`, nor of the inputs before `first_input`; and none of any input if that is -1.
    """
    return _forward(nets, x, precision, keep=False)[0]


def _forward(
    nets: tuple[Layers, ...], x: Array, precision: Precision, keep: bool
) -> Sequence[Array]:
    _register()
    rows, layers = x.shape[0], nets[0]
    kept = jnp.bfloat16 if precision == "bf16" else jnp.float32
    widths = [layer.weight.shape[1] for layer in layers]
    shapes = [jax.ShapeDtypeStruct((len(nets), rows, widths[-1]), jnp.float32)]
    if keep:
        shapes += [jax.ShapeDtypeStruct((len(nets), rows, width), kept) for width in widths[:-1]]
    call = jax.ffi.ffi_call(f"{_TARGET}_forward", shapes)
    return call(
        x,
        *jax.tree.leaves(nets),
        nets=np.int64(len(nets)),
        depth=np.int64(len(layers)),
        bf16=precision == "bf16",
        keep=keep,
    )


def _ahead(
    nets: tuple[Layers, ...], x: Array, precision: Precision, frozen: bool, first_input: int
) -> tuple[Array, Any]:
    out, *hidden = _forward(nets, x, precision, keep=True)
    return out, (nets, x, hidden)


def _back(
    precision: Precision, frozen: bool, first_input: int, kept: Any, gradient: Array
) -> tuple[Any, Array]:
    nets, x, hidden = kept
    leaves, tree = jax.tree.flatten(nets)
    wanted = 0 if first_input < 0 else x.shape[1] - first_input
    shapes = [] if frozen else [jax.ShapeDtypeStruct(leaf.shape, jnp.float32) for leaf in leaves]
    if wanted:
        shapes.append(jax.ShapeDtypeStruct((len(nets), x.shape[0], wanted), jnp.float32))
    call = jax.ffi.ffi_call(f"{_TARGET}_backward", shapes)
    results = call(
        x,
        *leaves,
        *hidden,
        gradient,
        nets=np.int64(len(nets)),
        depth=np.int64(len(nets[0])),
        bf16=precision == "bf16",
        params=not frozen,
        inputs=wanted > 0,
        first_input=np.int64(max(first_input, 0)),
    )
    of_params = [jnp.zeros_like(leaf) for leaf in leaves] if frozen else results[: len(leaves)]
    if not wanted:
        return tree.unflatten(of_params), jnp.zeros_like(x)
    of_inputs = results[-1].sum(axis=0)
    before = jnp.zeros((x.shape[0], x.shape[1] - wanted), jnp.float32)
    return tree.unflatten(of_params), jnp.concatenate([before, of_inputs], axis=1)


mlps.defvjp(_ahead, _back)
