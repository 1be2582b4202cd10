# SPDX-License-Identifier: Apache-2.0
"""The algorithms by name, and which of them an environment can be learnt with."""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError, unknown
from headrace.learn.algorithm import Algorithm
from headrace.train.config import replaced

ALGORITHMS: dict[str, tuple[str, str]] = {
    "ppo": ("headrace.learn.ppo", "Ppo"),
    "sac": ("headrace.learn.sac", "Sac"),
    "td3": ("headrace.learn.td3", "Td3"),
    "dqn": ("headrace.learn.dqn", "Dqn"),
}
"""Module and class; the module's `Config` is its configuration."""
CONTINUOUS, DISCRETE = ("sac", "td3"), ("dqn",)
"""Those that take one kind of actions alone; the others take both."""


def find_algorithm(name: str) -> tuple[type[Algorithm], type]:
    """The algorithm of this name, and the class of its configuration."""
    if name not in ALGORITHMS:
        raise unknown("algorithm", name, ALGORITHMS)
    module, kind = ALGORITHMS[name]
    found = importlib.import_module(module)
    return getattr(found, kind), found.Config


def make_algorithm(name: str, spec: EnvSpec, given: dict[str, Any], where: str) -> Algorithm:
    """With these hyper-parameters, from JSON; the others are as they are by default."""
    kind, config = find_algorithm(name)
    return kind(spec, replaced(config(), given, where))


def default_algorithm(spec: EnvSpec) -> str:
    """What to learn this environment with, if nobody says."""
    return "sac" if isinstance(spec.action_space, gymnasium.spaces.Box) else "ppo"


def check_spaces(name: str, spec: EnvSpec) -> None:
    """Raise unless this algorithm can learn this environment."""
    space = spec.action_space
    if not isinstance(space, gymnasium.spaces.Box | gymnasium.spaces.Discrete):
        raise HeadraceError(
            f"{spec.id} has actions of a {type(space).__name__} space; learning takes Box and "
            "Discrete ones"
        )
    continuous = isinstance(space, gymnasium.spaces.Box)
    wanted = {**dict.fromkeys(CONTINUOUS, True), **dict.fromkeys(DISCRETE, False)}
    if wanted.get(name, continuous) != continuous:
        ours, theirs = ("continuous", "discrete") if continuous else ("discrete", "continuous")
        others = [one for one in ALGORITHMS if wanted.get(one, continuous) == continuous]
        raise HeadraceError(
            f"{name} is for {theirs} actions; those of {spec.id} are {ours}: "
            f"--algo {' or '.join(others)}"
        )
    if spec.players > 1 and name != "ppo":
        raise HeadraceError(f"{spec.id} is played by turns, which ppo learns; {name} does not")
