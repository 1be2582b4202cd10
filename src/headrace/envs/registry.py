# SPDX-License-Identifier: Apache-2.0
"""Environments by name: ours, those other packages add, and any that Gymnasium knows.

Another package adds its own by calling `headrace.register(...)`, or without being imported first by
an entry point in the group "headrace.environments" whose target is a function that calls it.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

import gymnasium

from headrace.envs.spec import EnvEntry, EnvSpec
from headrace.errors import HeadraceError, unknown

_entries: dict[str, EnvEntry] = {}
_plugins_loaded = False


def register(
    id: str,  # noqa: A002 - Gymnasium's word
    *,
    gym: str | Callable[..., Any] | None = None,
    array: str | Callable[..., Any] | None = None,
    native: str | None = None,
    max_episode_steps: int | None = None,
) -> None:
    """Add an environment. Definitions are made only when they are used; see `EnvEntry`."""
    if not (gym or array or native):
        raise HeadraceError(f"{id}: give at least one definition: gym, array or native")
    if id in _entries:
        raise HeadraceError(f"{id} is registered already")
    _entries[id] = EnvEntry(id, gym, array, native, max_episode_steps)


def entries() -> list[EnvEntry]:
    """Every registered environment, by name."""
    _load_plugins()
    return [_entries[name] for name in sorted(_entries)]


def spec(
    id: str,  # noqa: A002
    *,
    max_episode_steps: int | None = None,
    **options: Any,
) -> EnvSpec:
    """The environment of this name with these options; an error names near matches.

    `max_episode_steps` overrides the registered time limit; 0 removes it.
    """
    entry = _find(id)
    limit = entry.max_episode_steps if max_episode_steps is None else max_episode_steps
    if limit is not None and limit < 0:
        raise HeadraceError(f"max_episode_steps is {limit}; it must be at least 0 (0: no limit)")
    observation_space, action_space = _spaces(entry, options)
    return EnvSpec(entry, observation_space, action_space, limit or None, options)


def _find(name: str) -> EnvEntry:
    _load_plugins()
    if name in _entries:
        return _entries[name]
    found = gymnasium.registry.get(name)
    if found is None or found.entry_point is None:
        raise unknown("environment", name, {*_entries, *gymnasium.registry})
    return EnvEntry(
        name, gym=_bare_maker(found), max_episode_steps=found.max_episode_steps
    )


def _bare_maker(found: gymnasium.envs.registration.EnvSpec) -> Callable[..., gymnasium.Env]:
    def make(**options: Any) -> gymnasium.Env:
        # Time limits and order checks are ours; the environment's own extra wrappers stay.
        try:
            env = gymnasium.make(
                found.id, max_episode_steps=-1, disable_env_checker=True, **options
            )
        except gymnasium.error.DependencyNotInstalled as error:
            raise HeadraceError(f"{found.id}: {error}") from error
        return env.env if isinstance(env, gymnasium.wrappers.OrderEnforcing) else env

    return make


def _spaces(entry: EnvEntry, options: dict[str, Any]) -> tuple[gymnasium.Space, gymnasium.Space]:
    # The cheapest definition answers: the native one has its spaces as constants.
    draft = EnvSpec(entry, gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(1), None, options)
    try:
        if entry.native:
            made = draft.make_native()
        elif entry.array:
            made = draft.make_array()
        else:
            made = draft.make_gym()
            made.close()
    except TypeError as error:
        raise HeadraceError(f"{entry.id}: {error}") from error
    return made.observation_space, made.action_space


def _load_plugins() -> None:
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    for plugin in importlib.metadata.entry_points(group="headrace.environments"):
        plugin.load()()


register(
    "CartPole-v1",
    gym="gymnasium.envs.classic_control.cartpole:CartPoleEnv",
    array="headrace.envs.array.cartpole:CartPole",
    native="CartPole-v1",
    max_episode_steps=500,
)
register(
    "Pendulum-v1",
    gym="gymnasium.envs.classic_control.pendulum:PendulumEnv",
    array="headrace.envs.array.pendulum:Pendulum",
    native="Pendulum-v1",
    max_episode_steps=200,
)
register(
    "Memory-v0",
    array="headrace.envs.array.memory:Memory",
    native="Memory-v0",
    max_episode_steps=1000,
)
