# SPDX-License-Identifier: Apache-2.0
"""Any environment as a `gymnasium.vector.VectorEnv`, by whichever definition is asked for."""

from __future__ import annotations

import copy as copying
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec as GymnasiumSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from headrace.envs import registry
from headrace.envs.spec import EnvSpec, load
from headrace.errors import HeadraceError, unknown

# Fastest first; and the arguments that not all of them take.
CLASSES = {
    "native": "headrace.envs.vector.native:NativeVectorEnv",
    "array": "headrace.envs.vector.array:ArrayVectorEnv",
    "gym": "headrace.collect.process_vector:ProcessVectorEnv",
}
TAKES = {
    "native": ("seed", "first_env", "threads", "isa", "observation_dtype"),
    "array": ("seed", "first_env"),
    "gym": ("workers", "render_mode"),
}


def make_vec(
    id: str | EnvSpec,  # noqa: A002 - Gymnasium's word
    num_envs: int = 1,
    *,
    definition: str | None = None,
    autoreset: str | AutoresetMode = "next_step",
    copy: bool = True,
    seed: int | list[int] | None = None,
    first_env: int | None = None,
    threads: int | None = None,
    isa: str | None = None,
    workers: int | None = None,
    render_mode: str | None = None,
    observation_dtype: str | None = None,
    max_episode_steps: int | None = None,
    **options: Any,
) -> VectorEnv:
    """Environments side by side, as Gymnasium has them; `options` are the environment's own.

    `definition` is "native", "array" (by NumPy) or "gym" (in processes); None takes the first of
    these that there is. `autoreset` is "next_step", "same_step" or "disabled". With `copy=False`
    results are views that the next step writes again. `max_episode_steps=0` removes the limit.

    Native and array environments take a `seed`, for a first reset without one, and `first_env`,
    from which they are numbered (`HostVectorEnv` says what seeds mean); native ones `threads`
    (None: all processors), `isa`, and `observation_dtype="float32"` where observations are bytes;
    those in processes `workers` and `render_mode`.
    """
    spec = _spec(id, max_episode_steps, options)
    chosen = definition or next(name for name in CLASSES if name in spec.definitions)
    if chosen not in CLASSES:
        raise unknown("definition", chosen, CLASSES)
    spec.require(chosen, f"definition='{chosen}'")
    special = {"seed": seed, "first_env": first_env, "threads": threads, "isa": isa}
    special |= {"workers": workers, "render_mode": render_mode}
    special |= {"observation_dtype": observation_dtype}
    special = {name: value for name, value in special.items() if value is not None}
    _check(chosen, num_envs, special)
    return _make(spec, chosen, num_envs, {"autoreset": autoreset, "copy": copy, **special})


def _spec(id: str | EnvSpec, max_episode_steps: int | None, options: dict[str, Any]) -> EnvSpec:  # noqa: A002
    if isinstance(id, str):
        return registry.spec(id, max_episode_steps=max_episode_steps, **options)
    if options or max_episode_steps is not None:
        raise HeadraceError("options and max_episode_steps go with an id; this is a spec already")
    return id


def _check(definition: str, num_envs: int, special: dict[str, Any]) -> None:
    for name in special:
        if name not in TAKES[definition]:
            places = " or ".join(one for one, names in TAKES.items() if name in names)
            raise HeadraceError(f"{name} is for definition {places}; this is {definition}")
    least = {"num_envs": 1, "threads": 1, "workers": 1, "first_env": 0}
    for name, value in {"num_envs": num_envs, **special}.items():
        if name not in least:
            continue
        if not isinstance(value, int | np.integer) or not least[name] <= value < 2**32:
            raise HeadraceError(
                f"{name} is {value!r}; it must be a whole number from {least[name]}"
            )


def _make(spec: EnvSpec, definition: str, num_envs: int, arguments: dict[str, Any]) -> VectorEnv:
    from headrace.envs.vector.arguments import checked_autoreset

    mode = checked_autoreset(arguments["autoreset"])
    rest = {**arguments, "autoreset": mode}
    made = spec
    if "render_mode" in rest:  # one of the environment's own options, to Gymnasium
        made = replace(spec, options={**spec.options, "render_mode": rest.pop("render_mode")})
    envs = load(CLASSES[definition])(made, num_envs, **rest)
    arguments = {**arguments, "autoreset": mode.name.lower(), "definition": definition}
    envs.spec = _gymnasium_spec(spec, {"num_envs": num_envs, **arguments})
    return envs


def _gymnasium_spec(spec: EnvSpec, arguments: dict[str, Any]) -> GymnasiumSpec | None:
    """What `gymnasium.make_vec` makes the same environments from."""
    ours = registry.is_registered(spec.id)
    found = gymnasium.registry.get(registry.gymnasium_id(spec.id) if ours else spec.id)
    if found is None:
        return None
    found = copying.deepcopy(found)
    found.kwargs = dict(spec.options)
    if ours:
        found.kwargs |= {**arguments, "max_episode_steps": spec.max_episode_steps or 0}
    return found


def __getattr__(name: str) -> Callable[..., VectorEnv]:
    """Gymnasium's entry points read "module:attribute"; here, "headrace.make_vec:CartPole-v1"."""
    if registry.is_registered(name):
        return functools.partial(make_vec, name)
    raise AttributeError(f"module 'headrace.make_vec' has no attribute '{name}'")
