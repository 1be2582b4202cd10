# SPDX-License-Identifier: Apache-2.0
"""A distribution over the legal moves on a board, by the native core inside XLA programs.

Of 4,672 actions some thirty are legal. Only their logits are computed, and only theirs have
gradients, where dense arrays would hold all of them for every step of the mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from headrace import _native
from headrace.envs.array.namespace import Array
from headrace.learn.networks import Dense

_TARGET = "headrace_moves"


@cache
def _register() -> None:
    jax.devices("cpu")  # before XLA's first use targets are registered ahead of what they need
    for name, handler in _native.move_handlers().items():
        jax.ffi.register_ffi_target(f"{_TARGET}_{name}", handler, platform="cpu")


def runs(channels: int) -> bool:
    """Whether this processor, and the channels, a multiple of 16, allow it."""
    return channels % 16 == 0 and jax.default_backend() == "cpu" and _native.has_moves()


@dataclass(frozen=True)
class LegalMoves:
    """What `Categorical` is, of the logits that a kernel of one square gives, and a mask."""

    params: Dense
    """[1, 1, channels, 73]."""
    board: Array
    """Features [B, row, column, channels]."""
    mask: Array
    """Bits [B, 584]."""

    def sample(self, uniform: Array) -> Array:
        """Actions [B] by uniform numbers in [0, 1)."""
        return self._choose(uniform, likeliest=False)

    def mode(self) -> Array:
        """The likeliest actions [B]."""
        return self._choose(jnp.zeros(self.mask.shape[0], jnp.float32), likeliest=True)

    def log_prob(self, action: Array) -> Array:
        """Of actions [B]."""
        return _judge(self.params, self.board, self.mask, action.astype(jnp.int32))[0]

    def entropy(self) -> Array:
        """[B], of the legal moves."""
        none = jnp.zeros(self.mask.shape[0], jnp.int32)
        return _judge(self.params, self.board, self.mask, none)[1]

    def _choose(self, uniform: Array, likeliest: bool) -> Array:
        _register()
        shape = jax.ShapeDtypeStruct((self.mask.shape[0],), jnp.int32)
        call = jax.ffi.ffi_call(f"{_TARGET}_choose", shape)
        inputs = _inputs(self.params, self.board, self.mask)
        return call(*jax.lax.stop_gradient(inputs), uniform, likeliest=likeliest)


def _inputs(params: Dense, board: Array, mask: Array) -> tuple[Array, ...]:
    return board, params.weight, params.bias, mask


@jax.custom_vjp
def _judge(params: Dense, board: Array, mask: Array, action: Array) -> tuple[Array, Array]:
    """Log-probabilities and entropies [B]."""
    _register()
    shape = jax.ShapeDtypeStruct(action.shape, jnp.float32)
    call = jax.ffi.ffi_call(f"{_TARGET}_judge", (shape, shape))
    log_prob, entropy = call(*_inputs(params, board, mask), action)
    return log_prob, entropy


def _ahead(params: Dense, board: Array, mask: Array, action: Array) -> Any:
    return _judge(params, board, mask, action), (params, board, mask, action)


def _back(kept: Any, gradients: tuple[Array, Array]) -> tuple[Dense, Array, None, None]:
    params, board, mask, action = kept
    shapes = [jax.ShapeDtypeStruct(of.shape, jnp.float32) for of in (board, *params)]
    call = jax.ffi.ffi_call(f"{_TARGET}_gradients", shapes)
    of_board, weight, bias = call(*_inputs(params, board, mask), action, *gradients)
    return Dense(weight, bias), of_board, None, None


_judge.defvjp(_ahead, _back)
