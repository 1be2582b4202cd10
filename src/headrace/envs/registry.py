# SPDX-License-Identifier: Apache-2.0
"""Environments by name: ours, those other packages add, and any that Gymnasium knows.

Another package adds its own by calling `headrace.register(...)`, or without being imported first by
an entry point in the group "headrace.environments" whose target is a function that calls it.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec as GymnasiumSpec

from headrace.envs.spec import EnvEntry, EnvSpec, load
from headrace.errors import ExtraMissingError, HeadraceError, unknown

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
    entry = EnvEntry(id, gym, array, native, max_episode_steps)
    _tell_gymnasium(entry)
    _entries[id] = entry


def is_registered(id: str) -> bool:  # noqa: A002
    """Whether there is an environment of this name besides Gymnasium's own."""
    return id in _entries


def gymnasium_id(id: str) -> str:  # noqa: A002
    """The name by which Gymnasium knows a registered environment."""
    return f"headrace/{id.replace('/', '.')}"


def entries() -> list[EnvEntry]:
    """Every registered environment, by name."""
    _load_plugins()
    return [_entries[name] for name in sorted(_entries)]


def spec(
    id: str | Callable[..., gymnasium.Env],  # noqa: A002
    *,
    max_episode_steps: int | None = None,
    **options: Any,
) -> EnvSpec:
    """The environment of this name with these options; an error names near matches.

    Besides names there are "package.module:Class", or any callable: what it gives, with the
    options, is a Gymnasium environment. An option `wrappers`, "package.module:Class" or several
    with commas between, puts these around it, the last outermost; then there is the gym definition
    alone.

    `max_episode_steps` overrides the registered time limit; 0 removes it.
    """
    entry = _find(id) if isinstance(id, str) else _own(id)
    if "wrappers" in options:
        entry = _wrapped(entry)
    limit = entry.max_episode_steps if max_episode_steps is None else max_episode_steps
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise HeadraceError(f"max_episode_steps is {limit!r}; it must be at least 0 (0: no limit)")
    made = _make(entry, options)
    return EnvSpec(
        entry,
        made.observation_space,
        made.action_space,
        limit or None,
        options,
        getattr(made, "masked", False),
        getattr(made, "players", 1),
    )


def _find(name: str) -> EnvEntry:
    _load_plugins()
    for entry in _entries.values():
        if name in (entry.id, gymnasium_id(entry.id)):
            return entry
    if ":" in name and (own := _by_import(name)) is not None:
        return own
    if name.startswith("ALE/"):
        _register_atari(name)
    found = gymnasium.registry.get(name.rpartition(":")[2])
    if found is None or found.entry_point is None:
        theirs = {one for one in gymnasium.registry if not one.startswith("headrace/")}
        raise unknown("environment", name, {*_entries, *theirs}, _entries)
    return EnvEntry(name, gym=_BareMaker(found), max_episode_steps=found.max_episode_steps)


def _by_import(name: str) -> EnvEntry | None:
    """What "package.module:attribute" is; None where that module registers ids of Gymnasium's."""
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise HeadraceError(f"{name}: {error}") from error
    if not hasattr(found, attribute):
        if attribute in gymnasium.registry:
            return None
        callables = [one for one, value in vars(found).items() if callable(value)]
        raise unknown(f"environment in {module}", attribute, callables)
    return EnvEntry(name, gym=name)


def _own(maker: Callable[..., gymnasium.Env]) -> EnvEntry:
    """Known by the name of the callable from now on, in this process."""
    name = f"{maker.__module__}:{getattr(maker, '__qualname__', type(maker).__name__)}"
    _entries[name] = EnvEntry(name, gym=maker)
    return _entries[name]


def _register_atari(name: str) -> None:
    try:
        import ale_py
    except ImportError as error:
        raise ExtraMissingError(name, "atari") from error
    gymnasium.register_envs(ale_py)


def _wrapped(entry: EnvEntry) -> EnvEntry:
    if entry.gym is None:
        raise HeadraceError(f"{entry.id} has no gym definition, which wrappers need")
    return EnvEntry(
        entry.id, gym=_WrappedMaker(entry.gym), max_episode_steps=entry.max_episode_steps
    )


@dataclass(frozen=True)
class _WrappedMaker:
    """Makes an environment with wrappers around it; picklable."""

    gym: str | Callable[..., Any]

    def __call__(self, wrappers: str, **options: Any) -> gymnasium.Env:
        env = load(self.gym)(**options)
        for name in filter(None, wrappers.split(",")):
            try:
                env = load(name.strip())(env)
            except (ImportError, AttributeError) as error:
                raise HeadraceError(f"wrapper {name}: {error}") from error
        return env


@dataclass(frozen=True)
class _BareMaker:
    """Makes an environment of Gymnasium's; picklable, and good where its id is not registered."""

    found: GymnasiumSpec

    def __call__(self, **options: Any) -> gymnasium.Env:
        # Time limits and order checks are ours; the environment's own extra wrappers stay.
        try:
            env = gymnasium.make(
                self.found, max_episode_steps=-1, disable_env_checker=True, **options
            )
        except gymnasium.error.DependencyNotInstalled as error:
            raise HeadraceError(f"{self.found.id}: {error}") from error
        return env.env if isinstance(env, gymnasium.wrappers.OrderEnforcing) else env


class _Description(NamedTuple):
    """What a definition says of the environment."""

    observation_space: gymnasium.Space
    action_space: gymnasium.Space
    masked: bool
    players: int


def _described(env: gymnasium.Env) -> _Description:
    """By its spaces and attributes, or else by what it tells when it is first reset."""
    told: dict[str, Any] = {}
    with contextlib.closing(env):
        if isinstance(env.action_space, gymnasium.spaces.Discrete):
            with contextlib.suppress(Exception):  # it comes again where the environment is used
                _, told = env.reset()

        def said(name: str, otherwise: Any) -> Any:
            return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else otherwise

        masked = bool(said("masked", "action_mask" in told))
        players = int(said("players", 2 if "to_play" in told else 1))
        return _Description(env.observation_space, env.action_space, masked, players)


def _make(entry: EnvEntry, options: dict[str, Any]) -> Any:
    # The cheapest definition answers: the native one has its spaces as constants.
    unknown_yet = gymnasium.spaces.Discrete(1)
    draft = EnvSpec(entry, unknown_yet, unknown_yet, None, options)
    try:
        if entry.native:
            made = draft.make_native()
        elif entry.array:
            made = draft.make_array()
        else:
            return _described(draft.make_gym())
    except HeadraceError:
        raise
    except Exception as error:  # what an environment's own constructor raises, its package missing
        raise HeadraceError(f"{entry.id} cannot be made: {error}") from error
    return made


def _tell_gymnasium(entry: EnvEntry) -> None:
    """For `gymnasium.make_vec("headrace/ID")`; with a gym definition `gymnasium.make` as well."""
    try:
        gymnasium.register(
            gymnasium_id(entry.id),
            entry_point=entry.gym,
            vector_entry_point=f"headrace.make_vec:{entry.id}",
            max_episode_steps=entry.max_episode_steps,
        )
    except gymnasium.error.Error as error:
        raise HeadraceError(f"Gymnasium does not take the id '{entry.id}': {error}") from error


def _load_plugins() -> None:
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True
    import importlib.metadata  # only now: it is not light

    for plugin in importlib.metadata.entry_points(group="headrace.environments"):
        try:
            plugin.load()()
        except Exception as error:  # somebody else's: the rest must go on
            warnings.warn(
                f"the environments of '{plugin.name}' ({plugin.value}) are missing: {error}",
                stacklevel=2,
            )


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
register(
    "Chess-v0",
    gym="headrace.envs.chess.gym:ChessEnv",
    native="Chess-v0",
    max_episode_steps=512,
)
register(
    "ChessVsRandom-v0",
    gym="headrace.envs.chess.gym:ChessVsRandomEnv",
    native="ChessVsRandom-v0",
    max_episode_steps=256,
)
