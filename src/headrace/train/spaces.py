# SPDX-License-Identifier: Apache-2.0
"""Spaces as JSON, for the card of a policy."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from headrace.errors import HeadraceError


def space_to_json(space: gymnasium.Space) -> dict[str, Any]:
    """A Box or a Discrete space; bounds that are all the same are said once."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return {"discrete": int(space.n), "start": int(space.start)}
    if isinstance(space, gymnasium.spaces.Box):
        return {
            "box": list(space.shape),
            "dtype": str(space.dtype),
            "low": _bounds_to_json(space.low),
            "high": _bounds_to_json(space.high),
        }
    raise HeadraceError(f"policies are saved for Box and Discrete spaces; not {space}")


def space_from_json(told: dict[str, Any]) -> gymnasium.Space:
    """The space again."""
    if "discrete" in told:
        return gymnasium.spaces.Discrete(told["discrete"], start=told["start"])
    shape, dtype = tuple(told["box"]), np.dtype(told["dtype"])
    low, high = (_bounds_from_json(told[name], shape, dtype) for name in ("low", "high"))
    return gymnasium.spaces.Box(low, high, shape, dtype.type)


def _bounds_to_json(bounds: np.ndarray) -> Any:
    """Infinities are words: JSON has no number for them."""
    words = [str(one) if np.isinf(one) else one.item() for one in bounds.ravel()]
    return words[0] if len(set(words)) == 1 else words


def _bounds_from_json(told: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    values = told if isinstance(told, list) else [told] * int(np.prod(shape))
    return np.array([float(one) if isinstance(one, str) else one for one in values], dtype).reshape(
        shape
    )
