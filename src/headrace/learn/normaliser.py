# SPDX-License-Identifier: Apache-2.0
"""Running moments of observations, and the scale of rewards: pure, and part of what is learnt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array, Namespace

_CLIP = np.float32(10)
_LEAST = np.float32(1e-8)


class Moments(NamedTuple):
    """Mean and variance of all that was seen so far; of a batch's last axes."""

    count: Array
    """float32: beyond 2^24 batches it stays as it is, and the moments follow slowly."""
    mean: Array
    var: Array


def no_moments(shape: tuple[int, ...] = ()) -> Moments:
    """Of nothing: values pass unchanged."""
    return Moments(
        np.zeros((), np.float32), np.zeros(shape, np.float32), np.ones(shape, np.float32)
    )


def add(ns: Namespace, moments: Moments, values: Array) -> Moments:
    """With a batch of values [..., *shape] seen as well (Chan, Golub and LeVeque, 1983)."""
    flat = ns.to_float(values).reshape((-1, *moments.mean.shape))
    count = np.float32(flat.shape[0])
    mean = flat.mean(axis=0)
    var = ((flat - mean) ** 2).mean(axis=0)
    total = moments.count + count
    share = count / total
    apart = mean - moments.mean
    return Moments(
        total,
        moments.mean + apart * share,
        moments.var + (var - moments.var) * share + apart * apart * share * (1 - share),
    )


def normalise(ns: Namespace, moments: Moments, values: Array) -> Array:
    """Values around 0 of size 1, cut at ±10."""
    away = (ns.to_float(values) - moments.mean) / ns.xp.sqrt(moments.var + _LEAST)
    return ns.xp.clip(away, -_CLIP, _CLIP)


def scaled(ns: Namespace, moments: Moments, rewards: Array) -> Array:
    """Rewards in units of the discounted returns' spread; their sign and zero stay."""
    return rewards / ns.xp.sqrt(moments.var + _LEAST)
