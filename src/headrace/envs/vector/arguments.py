# SPDX-License-Identifier: Apache-2.0
"""What callers give to `reset` and `step`: made plain, or refused in one line."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError, unknown

Seeds = int | list[int | None] | None


def checked_autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    """By Gymnasium's enum, or its name or value in any spelling: "next_step", "NextStep"."""
    if isinstance(mode, AutoresetMode):
        return mode
    known = {one.name.lower(): one for one in AutoresetMode}
    plain = {name.replace("_", ""): one for name, one in known.items()}
    found = plain.get(mode.lower().replace("_", "")) if isinstance(mode, str) else None
    if found is None:
        raise unknown("autoreset mode", str(mode), known)
    return found


def checked_seeds(seed: Any, num_envs: int) -> Seeds:
    """None, one seed, or one for each environment (None there: it goes on)."""
    if seed is None:
        return None
    if isinstance(seed, int | np.integer):
        return _checked_seed(seed)
    if not isinstance(seed, list | tuple | np.ndarray):
        raise HeadraceError(f"seed is {seed!r}; give a whole number or a list of them")
    if len(seed) != num_envs:
        raise HeadraceError(f"there are {len(seed)} seeds for {num_envs} environments")
    return [None if one is None else _checked_seed(one) for one in seed]


def _checked_seed(seed: Any) -> int:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise HeadraceError(f"seed is {seed!r}; it must be a whole number in 0 .. 2^64 - 1")
    return int(seed)


def checked_mask(
    spec: EnvSpec, num_envs: int, options: dict[str, Any] | None
) -> npt.NDArray[np.bool_] | None:
    """The `reset_mask` of the options of a reset; None: all environments."""
    rest = dict(options or {})
    mask = rest.pop("reset_mask", None)
    if rest:
        raise HeadraceError(
            f"{spec.id} here has no reset options {sorted(rest)}; definition='gym' may have"
        )
    if mask is None:
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        what = f"{mask.dtype}{mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
        raise HeadraceError(f"reset_mask is {what}; it must be a NumPy bool array ({num_envs},)")
    if not mask.any():
        raise HeadraceError("reset_mask is False everywhere; it must choose an environment")
    return np.ascontiguousarray(mask)


def checked_space(spec: EnvSpec, dtype: str | None) -> gymnasium.Space:
    """The observations' space, in another dtype where one is asked for."""
    space = spec.observation_space
    if dtype is None or space.dtype == dtype:
        return space
    if dtype != "float32" or not isinstance(space, gymnasium.spaces.Box):
        raise HeadraceError(
            f"observation_dtype is {dtype!r}; {spec.id} here has {space.dtype} or 'float32'"
        )
    return gymnasium.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32
    )


def checked_actions(spec: EnvSpec, num_envs: int, actions: Any) -> npt.NDArray[Any]:
    """Lists, other dtypes or strided arrays as int64 or float32 `[num_envs, ...]`, contiguous.

    As in Gymnasium, a component of a Box action may lie outside the box; it must be finite.
    """
    space = spec.action_space
    shape = (num_envs, *(space.shape or ()))
    try:
        given = np.asarray(actions)
    except (TypeError, ValueError):
        raise HeadraceError(f"actions are uneven; {spec.id} here takes shape {shape}") from None
    if given.shape != shape:
        raise HeadraceError(
            f"actions have shape {given.shape}; {spec.id} here takes {shape}"
        ) from None
    if isinstance(space, gymnasium.spaces.Discrete):
        return _checked_choices(spec.id, space, given)
    return _checked_components(spec.id, given)


def _checked_choices(
    name: str, space: gymnasium.spaces.Discrete, given: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    if given.dtype.kind not in "iub":
        raise HeadraceError(f"actions have dtype {given.dtype}; {name} takes integers") from None
    refuse_impossible(name, space, given)
    return np.ascontiguousarray(given, np.int64)


def _checked_components(name: str, given: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    if given.dtype.kind not in "iufb":
        raise HeadraceError(f"actions have dtype {given.dtype}; {name} takes float32") from None
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
        components = np.ascontiguousarray(given, np.float32)
    _refuse_any(given, ~np.isfinite(components), "actions must be finite")
    return components


def refuse_impossible(name: str, space: gymnasium.Space, actions: npt.NDArray[Any]) -> None:
    """Raise for a choice that there is not, or a component that is no number."""
    if isinstance(space, gymnasium.spaces.Discrete):
        first, last = int(space.start), int(space.start + space.n - 1)
        _refuse_any(
            actions, (actions < first) | (actions > last), f"{name} takes {first} to {last}"
        )
    elif actions.dtype.kind == "f":
        _refuse_any(actions, ~np.isfinite(actions), "actions must be finite")


def _refuse_any(given: npt.NDArray[Any], bad: npt.NDArray[np.bool_], rule: str) -> None:
    if bad.any():
        at = np.argwhere(bad)[0].tolist()
        position, value = ", ".join(map(str, at)), given[tuple(at)]
        raise HeadraceError(f"actions[{position}] is {value}; {rule}") from None
