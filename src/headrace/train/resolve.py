# SPDX-License-Identifier: Apache-2.0
"""From what was asked for to everything that a run needs, checked before anything is made.

What counts, first to last: what was given; the file; the preset; the algorithm's own defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from headrace.envs import registry
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError, unknown
from headrace.learn.algorithm import Algorithm
from headrace.train.algorithms import check_spaces, default_algorithm, find_algorithm
from headrace.train.config import (
    ABOUT,
    Definition,
    LearnerName,
    Mode,
    RunConfig,
    Settings,
    read_config_file,
    replaced,
)
from headrace.train.presets import find_preset

HOW = tuple(
    item.name
    for item in dataclasses.fields(RunConfig)
    if item.name not in ("settings", "algorithm")
)
"""Names in a file that are neither settings nor hyper-parameters."""
NO_PRESET = "none"
COMPILED = ("native", "array")
"""Definitions that go into one program with the update."""
EVALUATED_IN = {"Chess-v0": "ChessVsRandom-v0", "ChessVsRandom-v0": "ChessVsRandom-v0"}
"""Where self-play says nothing of strength: the same game, with an opponent inside."""


def resolve(
    env: str | None,
    *,
    algo: str | None = None,
    preset: str | None = None,
    mode: Mode | None = None,
    definition: Definition | None = None,
    learner: LearnerName | None = None,
    options: Mapping[str, Any] | None = None,
    config_file: Path | None = None,
    given: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Fill in what was not given; raise for what cannot be done.

    `given` are settings and hyper-parameters by their names; `options` the environment's, and
    max_episode_steps.
    """
    file, where = {}, f"--config {config_file}"
    if config_file is not None:
        file = {k: v for k, v in read_config_file(config_file).items() if k not in ABOUT}
    how = {name: file.pop(name) for name in HOW if name in file}
    env = env or how.get("env")
    if env is None:
        raise HeadraceError("no environment is named")
    spec = _environment(env, how, options or {})
    name: str = algo or how.get("algo") or default_algorithm(spec)
    kind, config_class = find_algorithm(name)
    check_spaces(name, spec)
    settings, algorithm = Settings(), config_class()
    asked = preset or how.get("preset")
    found = None if asked == NO_PRESET else find_preset(spec.id, name, asked)
    preferred: Any = None
    if found is not None:
        values = dict(found.values)
        preferred = values.pop("learner", None)
        spec = _environment(env, how, options or {}, values.pop("options", {}))
        settings, algorithm = _layer(settings, algorithm, values, f"preset {found.name}")
    file |= file.pop("hyper_parameters", {})
    settings, algorithm = _layer(settings, algorithm, file, where)
    settings, algorithm = _layer(settings, algorithm, given or {}, "train")
    learnt = kind(spec, algorithm)  # it knows what else must be
    mode, definition, learner = _arrangement(
        learnt,
        mode or how.get("mode"),
        definition or how.get("definition"),
        learner or how.get("learner"),
        preferred,
    )
    return RunConfig(
        env=spec.id,
        algo=name,
        algorithm=algorithm,
        settings=settings,
        mode=mode,
        definition=definition,
        learner=learner,
        options=dict(spec.options),
        max_episode_steps=spec.max_episode_steps,
        preset=None if found is None else found.name,
        evaluation_env=how.get("evaluation_env", EVALUATED_IN.get(spec.id)),
    )


def _environment(
    env: str,
    how: dict[str, Any],
    options: Mapping[str, Any],
    preset: Mapping[str, Any] | None = None,
) -> EnvSpec:
    """With the preset's options, the file's if it is the file's environment, and those given."""
    before = dict(preset or {})
    if env == how.get("env"):
        before |= how.get("options", {})
        if "max_episode_steps" in how:
            before["max_episode_steps"] = how["max_episode_steps"] or 0
    return registry.spec(env, **{**before, **options})


def _layer(
    settings: Settings, algorithm: Any, values: Mapping[str, Any], where: str
) -> tuple[Settings, Any]:
    """Both with these values instead of their own."""
    ours = {item.name for item in dataclasses.fields(settings)}
    theirs = {item.name for item in dataclasses.fields(algorithm)}
    for name in values:
        if name not in ours | theirs:
            raise HeadraceError(f"{where}: {unknown('setting', name, ours | theirs | {*HOW})}")
    settings = replaced(settings, {k: v for k, v in values.items() if k in ours}, where)
    return settings, replaced(algorithm, {k: v for k, v in values.items() if k in theirs}, where)


def _arrangement(
    algorithm: Algorithm,
    mode: Mode | None,
    definition: Definition | None,
    learner: LearnerName | None,
    preferred: LearnerName | None,
) -> tuple[Mode, Definition, LearnerName]:
    """How, from which definition and by which learner, if nobody says: the fastest that there is.

    `preferred` is the preset's learner: where it is the host's, no program need be compiled.
    """
    spec = algorithm.spec
    if definition is not None:
        spec.require(definition, f"--definition {definition}")
    fastest = next(name for name in (*COMPILED, "gym") if name in spec.definitions)
    chosen = definition or cast(Definition, fastest)
    if mode == "compiled" and chosen not in COMPILED:
        raise HeadraceError(
            f"--mode compiled needs a native or an array definition, and {spec.id} is to be "
            f"trained by its {chosen} one: --mode async or serial"
        )
    if mode == "compiled" and learner == "host":
        raise HeadraceError("--mode compiled learns by XLA: --learner host is for serial and async")
    if mode != "compiled":
        learner = learner or preferred
    if mode is None:
        in_a_program = "serial" if learner == "host" else "compiled"
        mode = in_a_program if chosen in COMPILED else "async"
    if learner is None:
        learner = "host" if mode != "compiled" and algorithm.prefers_host else "xla"
    if learner == "host":
        algorithm.host_update()
    return mode, chosen, learner
