# SPDX-License-Identifier: Apache-2.0
"""Networks over images and boards, channels last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array, Namespace
from headrace.learn.networks import RELU_GAIN, Dense, dense, dense_init, orthogonal


def convolve(ns: Namespace, params: Dense, x: Array, stride: int = 1, same: bool = False) -> Array:
    """[B, H, W, inputs] to [B, H', W', outputs]; `same`: with zeros around, so that H' is H.

    As one product of matrices: XLA's own convolutions are slow on processors, their gradients by
    two orders of magnitude.
    """
    xp = ns.xp
    height, width, _, outputs = params.weight.shape
    if same:
        x = xp.pad(x, ((0, 0), _around(height), _around(width), (0, 0)))
    rows, columns = ((n - k) // stride for n, k in ((x.shape[1], height), (x.shape[2], width)))
    shifted = [
        x[:, i : i + rows * stride + 1 : stride, j : j + columns * stride + 1 : stride]
        for i in range(height)
        for j in range(width)
    ]
    windows = shifted[0] if len(shifted) == 1 else xp.concatenate(shifted, axis=-1)
    return windows @ params.weight.reshape(-1, outputs) + params.bias


def _rectified(ns: Namespace, x: Array) -> Array:
    """With slope 0 at 0, where JAX's maximum has 1/2: blocks that add nothing yet begin there."""
    return ns.xp.where(x <= 0, 0, x)


def _around(size: int) -> tuple[int, int]:
    return (size - 1) // 2, size // 2


def convolution_init(
    generator: np.random.Generator, size: int, inputs: int, outputs: int, gain: float = RELU_GAIN
) -> Dense:
    """A square kernel, orthogonal from its inputs to its outputs."""
    weight = orthogonal(generator, (size, size, inputs, outputs), gain)
    return Dense(weight, np.zeros(outputs, np.float32))


class ConvolutionalParams(NamedTuple):
    """Kernels, and the layer behind them."""

    kernels: tuple[Dense, ...]
    last: Dense


@dataclass(frozen=True)
class Convolutional:
    """The small network for images of Mnih et al. (2013): two kernels and a layer."""

    shape: tuple[int, int, int]
    kernels: tuple[tuple[int, int, int], ...] = ((16, 8, 4), (32, 4, 2))
    """Channels, size and stride of each."""
    features: int = 256

    @property
    def channels_first(self) -> bool:
        """Whether the frames come before rows and columns, as Gymnasium stacks them."""
        return self.shape[0] < self.shape[2]

    def init(self, generator: np.random.Generator) -> ConvolutionalParams:
        """Orthogonal, with the gain of rectified layers."""
        sizes = self.shape[1:] if self.channels_first else self.shape[:2]
        inputs = self.shape[0] if self.channels_first else self.shape[2]
        kernels = []
        for channels, size, stride in self.kernels:
            kernels.append(convolution_init(generator, size, inputs, channels))
            sizes = tuple((side - size) // stride + 1 for side in sizes)
            inputs = channels
        return ConvolutionalParams(
            tuple(kernels),
            dense_init(generator, int(np.prod(sizes)) * inputs, self.features, RELU_GAIN),
        )

    def apply(self, ns: Namespace, params: ConvolutionalParams, obs: Array) -> Array:
        """Bytes become numbers from 0 to 1."""
        scale = np.float32(1 / 255 if obs.dtype == np.uint8 else 1)
        x = ns.to_float(obs) * scale
        if self.channels_first:
            x = ns.xp.moveaxis(x, 1, -1)
        for kernel, (_, _, stride) in zip(params.kernels, self.kernels, strict=True):
            x = ns.xp.maximum(convolve(ns, kernel, x, stride), 0)
        return ns.xp.maximum(dense(params.last, x.reshape((x.shape[0], -1))), 0)


class ResidualParams(NamedTuple):
    """The first kernel, and two for each block."""

    first: Dense
    blocks: tuple[tuple[Dense, Dense], ...]


@dataclass(frozen=True)
class Residual:
    """A board's squares through residual blocks, to as many features for each square."""

    shape: tuple[int, int, int]
    """Rows, columns, planes."""
    channels: int = 64
    blocks: int = 4

    @property
    def features(self) -> int:
        """Of all squares together."""
        return self.shape[0] * self.shape[1] * self.channels

    def init(self, generator: np.random.Generator) -> ResidualParams:
        """A block adds nothing at first: so that any number of them can be stacked."""
        channels = self.channels
        return ResidualParams(
            convolution_init(generator, 3, self.shape[2], channels),
            tuple(
                (
                    convolution_init(generator, 3, channels, channels),
                    convolution_init(generator, 3, channels, channels, 0.0),
                )
                for _ in range(self.blocks)
            ),
        )

    def map(self, ns: Namespace, params: ResidualParams, obs: Array) -> Array:
        """Features [B, rows, columns, channels]. Planes are 0 and 1, or counts, on a log scale."""
        x = ns.xp.log2(1 + ns.to_float(obs))
        if ns.name == "jax":
            from headrace.learn import native_residual

            if native_residual.runs(self.shape, self.channels):
                return native_residual.tower(params, x)
        x = _rectified(ns, convolve(ns, params.first, x, same=True))
        for first, second in params.blocks:
            inner = _rectified(ns, convolve(ns, first, x, same=True))
            x = _rectified(ns, x + convolve(ns, second, inner, same=True))
        return x

    def apply(self, ns: Namespace, params: ResidualParams, obs: Array) -> Array:
        """The same in one row for each observation."""
        return self.map(ns, params, obs).reshape((obs.shape[0], -1))
