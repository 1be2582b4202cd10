# SPDX-License-Identifier: Apache-2.0
"""The native kernels inside XLA programs, on the processor."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from headrace import _native
from headrace.envs.array.base import Step
from headrace.envs.array.namespace import Array
from headrace.envs.native import NativeDefinition

TARGET = "headrace_step"


@cache
def register() -> None:
    """Make the kernels known to XLA. It must be done before a program that calls them is loaded."""
    jax.devices("cpu")  # before XLA's first use targets are registered ahead of the types they need
    jax.ffi.register_ffi_type(f"{TARGET}_plan", _native.xla_plan_type(), platform="cpu")
    jax.ffi.register_ffi_target(TARGET, _native.xla_handlers(), platform="cpu")


def native_step(
    native: NativeDefinition, state: Array, action: Array, max_steps: int | None, threads: int = 1
) -> tuple[Array, Step]:
    """One SAME_STEP step of all environments, as a part of an XLA program.

    A pure function; XLA gives the new state the old one's memory where nothing else reads that.
    `action` is uint8[N] or uint16[N], which must be in range, or float32[N, components]. An illegal
    action, where that is an error, ends the program with one.
    """
    register()
    kernel, num_envs = native.kernel, action.shape[0]
    flags = jax.ShapeDtypeStruct((num_envs,), jnp.bool_)
    numbers = jax.ShapeDtypeStruct((num_envs,), jnp.float32)
    lengths = jax.ShapeDtypeStruct((num_envs,), jnp.int32)
    observations = jax.ShapeDtypeStruct(
        (num_envs, *kernel.observation_shape), kernel.observation_dtype
    )
    outputs = {
        "obs": observations,
        "reward": numbers,
        "terminated": flags,
        "truncated": flags,
        "next_obs": observations,
        "episode_return": numbers,
        "episode_length": lengths,
    }
    if kernel.masked:
        bits = jax.ShapeDtypeStruct((num_envs, -(-kernel.action_size // 8)), jnp.uint8)
        outputs |= {"mask": bits, "next_mask": bits}
    if kernel.players > 1:
        turns = jax.ShapeDtypeStruct((num_envs,), jnp.uint8)
        outputs |= {"to_play": turns, "next_to_play": turns}
    call = jax.ffi.ffi_call(
        TARGET,
        (jax.ShapeDtypeStruct(state.shape, state.dtype), *outputs.values()),
        input_output_aliases={0: 0},
    )
    state, *out = call(
        state,
        action,
        env=kernel.name,
        isa=kernel.isa,
        options=np.array(kernel.option_values, np.int64),
        max_steps=np.int64(max_steps or 0),
        threads=np.int64(threads),
    )
    return state, Step(**dict(zip(outputs, out, strict=True)))
