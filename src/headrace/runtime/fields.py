# SPDX-License-Identifier: Apache-2.0
"""Typed fields: what a row of experience is made of."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np

from headrace import aligned
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.policy import action_dtype


@dataclass(frozen=True)
class Field:
    """One array a row."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Of one row."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def rows(self, *count: int) -> np.ndarray:
        """Rows of zeros, aligned."""
        return aligned.zeros((*count, *self.shape), self.dtype)


Fields = tuple[Field, ...]


def transition_fields(spec: EnvSpec) -> Fields:
    """Those of `Transitions`, in their natural dtypes: images stay bytes."""
    obs_shape, obs_dtype = _observations(spec)
    action = spec.action_space
    fields = [
        Field("obs", obs_shape, obs_dtype),
        Field("action", action.shape or (), action_dtype(action).str),
        Field("reward", (), "<f4"),
        Field("discount", (), "<f4"),
        Field("next_obs", obs_shape, obs_dtype),
    ]
    if bits := spec.mask_bytes:
        fields += [Field("mask", (bits,), "|u1"), Field("next_mask", (bits,), "|u1")]
    return tuple(fields)


def rollout_fields(spec: EnvSpec, extras: dict[str, np.ndarray]) -> Fields:
    """Those of `Rollout`, for one step of one environment; `extras` are examples [N, ...]."""
    obs_shape, obs_dtype = _observations(spec)
    action = spec.action_space
    fields = [
        Field("obs", obs_shape, obs_dtype),
        Field("action", action.shape or (), action_dtype(action).str),
        Field("reward", (), "<f4"),
        Field("terminated", (), "|b1"),
        Field("truncated", (), "|b1"),
        Field("next_obs", obs_shape, obs_dtype),
    ]
    if bits := spec.mask_bytes:
        fields += [Field("mask", (bits,), "|u1"), Field("next_mask", (bits,), "|u1")]
    if spec.players > 1:
        fields += [Field("to_play", (), "|u1"), Field("next_to_play", (), "|u1")]
    fields += [
        Field(f"extras/{name}", array.shape[1:], array.dtype.str) for name, array in extras.items()
    ]
    return tuple(fields)


def _observations(spec: EnvSpec) -> tuple[tuple[int, ...], str]:
    space = spec.observation_space
    if not isinstance(space, gymnasium.spaces.Box | gymnasium.spaces.Discrete):
        raise HeadraceError(
            f"{spec.id}: observations of {type(space).__name__} spaces are not supported; wrap the "
            "environment so that they are a Box"
        )
    dtype = np.dtype(np.float32) if space.dtype == np.float64 else np.dtype(space.dtype)
    return space.shape or (), dtype.str
