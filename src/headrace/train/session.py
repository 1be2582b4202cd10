# SPDX-License-Identifier: Apache-2.0
"""A run put together: trainer, evaluation, folder and loop, by what the configuration says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace.envs import registry
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm
from headrace.train.algorithms import find_algorithm
from headrace.train.config import RunConfig, Settings, config_from_json, environment, only, replaced
from headrace.train.evaluate import evaluate, proven
from headrace.train.run_folder import CONFIG, RunFolder, read_config
from headrace.train.runner import Runner
from headrace.train.trainer import Trainer
from headrace.train.watch import Run, Watch

EVALUATION_SEED = 1 << 40
"""Added to the run's: no environment is evaluated in that is trained in."""
CONFIRMED_BY = 5
"""Times the usual episodes before a run ends for having reached its target."""
MakeTrainer = Callable[[RunConfig, EnvSpec], Trainer]


def train_new(
    config: RunConfig,
    path: Path,
    watch: Watch,
    stop_asked: Callable[[], bool],
    make: MakeTrainer | None = None,
) -> Run:
    """A new run in a new folder."""
    spec = environment(config)
    trainer = (make or make_trainer)(config, spec)
    try:
        with RunFolder.create(path, config) as folder:
            return _runner(config, spec, trainer, folder, watch, stop_asked).run()
    finally:
        trainer.close()


def train_on(
    path: Path,
    changed: Mapping[str, Any],
    watch: Watch,
    stop_asked: Callable[[], bool],
    make: MakeTrainer | None = None,
) -> Run:
    """A run continued from its newest checkpoint, with these settings changed."""
    told = read_config(path)
    before = config_from_json(told, str(path / CONFIG))
    config = dataclasses.replace(
        before, settings=replaced(before.settings, changed, "headrace resume")
    )
    with RunFolder(path) as folder:
        checkpoints, loaded = folder.checkpoints(config.settings.keep_checkpoints), None
        if checkpoints.paths():
            loaded = checkpoints.newest(watch.say)
        else:
            watch.say(f"{path} has no checkpoint yet: the run begins again")
        if loaded is not None and at_its_end(config.settings, loaded.meta):
            raise HeadraceError(
                f"{path} is at its end, {loaded.meta['env_steps']:,} environment steps; "
                "give it more --total-steps, another --until or --time-limit"
            )
        spec = environment(config)
        trainer = (make or make_trainer)(config, spec)
        try:
            runner = _runner(config, spec, trainer, folder, watch, stop_asked)
            runner.continue_from(loaded)
            if config != before:
                folder.write_config(config)
            return runner.run()
        finally:
            trainer.close()


def make_algorithm_of(config: RunConfig, spec: EnvSpec) -> Algorithm:
    """The algorithm that the configuration says."""
    return find_algorithm(config.algo)[0](spec, config.algorithm)


def make_trainer(config: RunConfig, spec: EnvSpec) -> Trainer:
    """In the arrangement that the configuration says; the asynchronous one is made elsewhere."""
    algorithm, settings = make_algorithm_of(config, spec), config.settings
    arguments: dict[str, Any] = {"num_envs": settings.num_envs, "steps": settings.steps}
    arguments |= {"seed": settings.seed, "definition": config.definition}
    if not algorithm.on_policy:
        names = ("updates", "replay_size", "learning_starts")
        arguments |= {name: getattr(settings, name) for name in names}
    if config.mode == "serial":
        arguments["learner"] = config.learner
        from headrace.train.serial import SerialTrainer as Kind
    elif algorithm.on_policy:
        from headrace.train.compiled import CompiledTrainer as Kind
    else:
        from headrace.train.compiled_offpolicy import CompiledOffPolicyTrainer as Kind
    return Kind(algorithm, spec, **arguments)


WHOLE_GAMES = {"start": "game"}
"""Options of what chess is evaluated in, whatever training begins with."""


def evaluation_environment(config: RunConfig, definition: str | None = None) -> EnvSpec:
    """What the run's policy is evaluated in, by this definition or the one it was trained by."""
    spec = environment(config)
    if config.evaluation_env is not None:
        spec = registry.spec(config.evaluation_env, **{**config.options, **WHOLE_GAMES})
    return only(spec, definition or config.definition)


def _runner(
    config: RunConfig,
    spec: EnvSpec,
    trainer: Trainer,
    folder: RunFolder,
    watch: Watch,
    stop_asked: Callable[[], bool],
) -> Runner:
    settings, algorithm = config.settings, trainer.algorithm
    played = evaluation_environment(config)

    def score(acting: Acting) -> np.ndarray:
        return scored(algorithm, acting, played, settings)

    return Runner(config, trainer, folder, score, watch, stop_asked)


def scored(algorithm: Algorithm, acting: Acting, played: EnvSpec, settings: Settings) -> np.ndarray:
    """The returns of an evaluation.

    One that would end the run is made of several times as many episodes: of many policies, the
    first whose mean over a few reaches a target is not yet one that does so. Where episodes are
    slow, no more are played than it takes to be sure.
    """
    episodes, seed = settings.evaluation_episodes, EVALUATION_SEED + settings.seed

    def play(again: int, count: int = episodes) -> np.ndarray:
        return evaluate(algorithm, acting, played, count, seed + again * EVALUATION_SEED)

    returns = play(0)
    if settings.until is None or returns.mean() < settings.until:
        return returns
    if played.definitions == ("gym",):
        return proven(returns, settings.until, CONFIRMED_BY * episodes, play)
    return np.concatenate([returns, play(1, CONFIRMED_BY * episodes)])


def at_its_end(settings: Settings, meta: dict[str, Any]) -> bool:
    """Whether nothing is left to do after this checkpoint."""
    if meta["env_steps"] >= settings.total_steps:
        return True
    if settings.time_limit is not None and meta["seconds"] >= settings.time_limit:
        return True
    score = meta["score"]
    return settings.until is not None and score is not None and score >= settings.until
