# SPDX-License-Identifier: Apache-2.0
"""What is true of an environment in every definition, and how to get each of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.envs.array.base import ArrayEnv
    from headrace.envs.native import NativeDefinition

DEFINITIONS = ("gym", "array", "native")


def load(target: str | Callable[..., Any]) -> Callable[..., Any]:
    """A callable, given itself or as "package.module:attribute"."""
    if callable(target):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class EnvEntry:
    """A registered environment: its definitions, not yet made.

    `gym` and `array` are callables taking the environment's options, or "package.module:attribute";
    `native` is a name in the native core.

    An environment some of whose actions may be illegal tells which are legal in
    `info["action_mask"]` (int8 or bool, 1 where legal) at each reset and step; one in which several
    take turns tells `info["to_play"]`. Attributes `masked` and `players` say so beforehand; a gym
    definition without them is known by what its first reset tells.
    """

    id: str
    gym: str | Callable[..., Any] | None = None
    array: str | Callable[..., Any] | None = None
    native: str | None = None
    max_episode_steps: int | None = None

    @property
    def definitions(self) -> tuple[str, ...]:
        """The definitions this environment has, of `DEFINITIONS`."""
        return tuple(name for name in DEFINITIONS if getattr(self, name) is not None)


@dataclass(frozen=True)
class EnvSpec:
    """One environment with its options fixed."""

    entry: EnvEntry
    observation_space: gymnasium.Space
    action_space: gymnasium.Space
    max_episode_steps: int | None
    """Steps after which an episode is truncated; None: never."""
    options: Mapping[str, Any] = field(default_factory=dict)
    masked: bool = False
    """Whether some of its (discrete) actions may be illegal: then there is a mask of bits."""
    players: int = 1
    """How many take turns; with more than one, whose turn it is is told."""

    @property
    def mask_bytes(self) -> int:
        """The length of a mask: action a is bit a % 8 of byte a // 8; 0 where there is none."""
        if not self.masked:
            return 0
        assert isinstance(self.action_space, gymnasium.spaces.Discrete)
        return (int(self.action_space.n) + 7) // 8

    @property
    def id(self) -> str:
        """The name it is registered under."""
        return self.entry.id

    @property
    def definitions(self) -> tuple[str, ...]:
        """The definitions this environment has, of `DEFINITIONS`."""
        return self.entry.definitions

    def require(self, definition: str, what: str) -> None:
        """Raise unless there is this definition, which `what` needs."""
        if definition not in self.definitions:
            raise HeadraceError(
                f"{what} needs the {definition} definition; "
                f"{self.id} has only: {', '.join(self.definitions)}"
            )

    def make_gym(self, **kwargs: Any) -> gymnasium.Env:
        """The Gymnasium environment, bare: no wrapper, no time limit."""
        self.require("gym", "this")
        assert self.entry.gym is not None
        return load(self.entry.gym)(**self.options, **kwargs)

    def make_array(self) -> ArrayEnv[Any]:
        """The pure functions over NumPy, torch or JAX."""
        self.require("array", "this")
        assert self.entry.array is not None
        return load(self.entry.array)(**self.options)

    def make_native(self, isa: str | None = None) -> NativeDefinition:
        """The compiled kernel, for the given instruction set or the newest this processor runs."""
        from headrace.envs.native import NativeDefinition

        self.require("native", "this")
        assert self.entry.native is not None
        return NativeDefinition(self.entry.native, dict(self.options), isa)
