# SPDX-License-Identifier: Apache-2.0
"""Networks: parameters made by NumPy, and one text that runs them on NumPy and on JAX arrays.

A network is a frozen description; its parameters are a pytree of float32 arrays beside it. So
nothing is compiled to begin with, and who only acts needs no JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace

Activation = Literal["tanh", "relu"]
RELU_GAIN = float(np.sqrt(2))


class Dense(NamedTuple):
    """A matrix and a bias; of a convolution the matrix is [height, width, inputs, outputs]."""

    weight: Array
    bias: Array


class Network(Protocol):
    """What turns observations into `features` numbers each."""

    @property
    def features(self) -> int:
        """How many numbers come out."""
        ...

    def init(self, generator: np.random.Generator) -> Any:
        """Parameters to begin with."""
        ...

    def apply(self, ns: Namespace, params: Any, obs: Array) -> Array:
        """Features [B, features] of observations [B, ...]."""
        ...


def orthogonal(
    generator: np.random.Generator, shape: tuple[int, ...], gain: float = 1.0
) -> np.ndarray:
    """A weight whose rows or columns, whichever are fewer, are orthogonal and as long as `gain`.

    Of more than two axes the last are the outputs, as in a convolution.
    """
    outputs = shape[-1]
    inputs = int(np.prod(shape[:-1]))
    square = generator.standard_normal((max(inputs, outputs), min(inputs, outputs)))
    basis, triangle = np.linalg.qr(square)
    basis *= np.sign(np.diag(triangle))  # so that all orthogonal matrices are equally likely
    if inputs < outputs:
        basis = basis.T
    return np.ascontiguousarray(gain * basis, np.float32).reshape(shape)


def dense_init(
    generator: np.random.Generator, inputs: int, outputs: int, gain: float = 1.0
) -> Dense:
    """A layer with an orthogonal matrix and no bias."""
    return Dense(orthogonal(generator, (inputs, outputs), gain), np.zeros(outputs, np.float32))


def dense(params: Dense, x: Array) -> Array:
    """The layer applied."""
    return x @ params.weight + params.bias


def activation(ns: Namespace, name: Activation) -> Callable[[Array], Array]:
    """The function of this name."""
    if name == "tanh":
        return ns.xp.tanh
    return lambda x: ns.xp.maximum(x, 0)


def flat_floats(ns: Namespace, obs: Array) -> Array:
    """Observations [B, ...] as float32 [B, size]; bytes become numbers from 0 to 1."""
    flat = obs.reshape((obs.shape[0], -1))
    if flat.dtype == np.uint8:
        return ns.to_float(flat) * np.float32(1 / 255)
    return flat if flat.dtype == np.float32 else ns.to_float(flat)


@dataclass(frozen=True)
class Mlp:
    """Layers, each followed by its activation."""

    inputs: int
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    first: int | None = None
    """Where an observation is one of as many numbers as there are inputs: the lowest of them."""

    @property
    def features(self) -> int:
        """The width of the last layer."""
        return self.hidden[-1] if self.hidden else self.inputs

    def init(self, generator: np.random.Generator) -> tuple[Dense, ...]:
        """Orthogonal, with the gain that keeps the signal's size."""
        sizes = zip((self.inputs, *self.hidden), self.hidden, strict=False)
        return tuple(dense_init(generator, a, b, RELU_GAIN) for a, b in sizes)

    def apply(self, ns: Namespace, params: tuple[Dense, ...], obs: Array) -> Array:
        """Observations [B, ...] of any dtype and shape."""
        x = self.read(ns, obs)
        act = activation(ns, self.activation)
        for layer in params:
            x = act(dense(layer, x))
        return x

    def read(self, ns: Namespace, obs: Array) -> Array:
        """Observations as numbers [B, inputs]: a number that only names something gets its own."""
        if self.first is None:
            return flat_floats(ns, obs)
        names = ns.xp.arange(self.first, self.first + self.inputs)
        return ns.to_float(obs.reshape((-1, 1)) == names)


def mlp_for(space: gymnasium.Space, hidden: tuple[int, ...], activation: Activation) -> Mlp:
    """Layers for an environment's observations."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return Mlp(int(space.n), hidden, activation, int(space.start))
    return Mlp(observation_size(space), hidden, activation)


def observation_size(space: gymnasium.Space) -> int:
    """How many numbers an observation is."""
    return int(np.prod(space.shape or ()))
