# SPDX-License-Identifier: Apache-2.0
"""Random numbers of updates, from the same counter-based generator as the environments' own.

They depend on a seed, a counter that the state carries and what they are for, so that a learner
that was saved continues with the same ones.
"""

from __future__ import annotations

import numpy as np

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.philox import philox

REPLAY, NEXT_ACTION, ACTION = 16, 17, 18
"""Streams of a learner's: beside the environments' own, whose numbers are small."""


def seed_words(seed: int) -> np.ndarray:
    """A seed of 64 bits as two words."""
    return np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint32)


def words(ns: Namespace, seed: Array, counter: Array, stream: int, count: int) -> Array:
    """`count` random words of a counter's, one word, in a stream."""
    lane = ns.xp.arange(-(-count // 4), dtype=ns.word)
    zero = ns.xp.zeros_like(lane)
    four = philox(ns, (lane, zero + counter, zero, zero + np.uint32(stream)), (seed[0], seed[1]))
    return ns.xp.concat(four)[:count]


def normals(seed: Array, counter: Array, stream: int, shape: tuple[int, ...]) -> Array:
    """Standard normal numbers, by the inverse of their distribution: within 5.3 of 0.

    JAX arrays.
    """
    import jax

    bits = words(namespace("jax"), seed, counter, stream, int(np.prod(shape)))
    # 23 bits and a half fit a float32: with one more, the largest would be rounded to infinity.
    middle = (bits >> np.uint32(9)).astype(np.float32) + np.float32(0.5)
    signed = middle * np.float32(2.0**-22) - np.float32(1)
    return np.float32(np.sqrt(2)) * jax.lax.erf_inv(signed).reshape(shape)
