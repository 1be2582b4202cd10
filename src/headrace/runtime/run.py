# SPDX-License-Identifier: Apache-2.0
"""An asynchronous run put together: what `headrace train --mode async` and `resume` do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Algorithm, State
from headrace.runtime.books import Books
from headrace.runtime.machine import processors
from headrace.runtime.plan import Plan, fields_of
from headrace.runtime.supervisor import Supervisor
from headrace.train import trees
from headrace.train.checkpoint import Loaded
from headrace.train.config import RunConfig, config_from_json, environment, replaced
from headrace.train.files import write_json
from headrace.train.run_folder import CONFIG, RunFolder, read_config
from headrace.train.session import at_its_end, evaluation_environment, make_algorithm_of
from headrace.train.watch import Run, Watch

TUNED = "tuned.json"
StopAsked = Callable[[], bool]


def train_new(config: RunConfig, path: Path, watch: Watch, stop_asked: StopAsked) -> Run:
    """A new run in a new folder."""
    algorithm = make_algorithm_of(config, environment(config))
    state = algorithm.init(config.settings.seed)
    with RunFolder.create(path, config) as folder:
        return _run(config, folder, watch, stop_asked, algorithm, state, None)


def train_on(path: Path, changed: Mapping[str, Any], watch: Watch, stop_asked: StopAsked) -> Run:
    """A run continued from its newest checkpoint, with these settings changed."""
    before = config_from_json(read_config(path), str(path / CONFIG))
    config = dataclasses.replace(
        before, settings=replaced(before.settings, changed, "headrace resume")
    )
    with RunFolder(path) as folder:
        loaded = folder.checkpoints(config.settings.keep_checkpoints).newest(watch.say)
        if at_its_end(config.settings, loaded.meta):
            raise HeadraceError(
                f"{path} is at its end, {loaded.meta['env_steps']:,} environment steps; "
                "give it more --total-steps, another --until or --time-limit"
            )
        algorithm = make_algorithm_of(config, environment(config))
        state = _learnt(algorithm, loaded, config.settings.seed)
        if config != before:
            folder.write_config(config)
        return _run(config, folder, watch, stop_asked, algorithm, state, loaded)


def _learnt(algorithm: Algorithm, loaded: Loaded, seed: int) -> State:
    """The learner's state in a checkpoint."""
    prefix = "learner/"
    arrays = {
        name.removeprefix(prefix): array
        for name, array in loaded.arrays.items()
        if name.startswith(prefix)
    }
    try:
        return trees.filled(algorithm.init(seed), arrays)
    except HeadraceError as error:
        raise HeadraceError(f"{loaded.path} does not belong to this run: {error}") from error


def _run(
    config: RunConfig,
    folder: RunFolder,
    watch: Watch,
    stop_asked: StopAsked,
    algorithm: Algorithm,
    state: State,
    loaded: Loaded | None,
) -> Run:
    acting = algorithm.acting(state)
    books = Books(config, folder, watch, None if loaded is None else loaded.meta)
    try:
        plan = make_plan(config, folder.path, algorithm, acting)
        if should_tune(plan):
            plan = _tuned(plan, books)
        checkpoint = None if loaded is None else loaded.path
        return Supervisor(plan, acting, books, stop_asked, checkpoint).run()
    finally:
        books.close()


def should_tune(plan: Plan) -> bool:
    """Whether anything is left open that measuring could tell."""
    settings = plan.settings
    if not settings.tune or settings.lock_step:
        return False
    given = [settings.samplers, plan.on_policy or settings.envs_per_sampler]
    return not all([*given, plan.on_policy or settings.updates_per_dispatch])


def _tuned(plan: Plan, books: Books) -> Plan:
    from headrace.runtime.tuner import applied, tune

    choice = tune(plan, books.say)
    write_json(plan.folder / TUNED, choice.to_json())
    return applied(plan, choice)


def make_plan(config: RunConfig, folder: Path, algorithm: Algorithm, acting: Any) -> Plan:
    """What was not given is chosen for this machine."""
    settings = config.settings
    samplers = settings.samplers or max(1, processors() - 1)
    envs = settings.envs_per_sampler or max(1, settings.num_envs // samplers)
    updates = settings.updates_per_dispatch or 8
    if settings.lock_step:
        updates = settings.updates or samplers * envs * settings.steps
    on_policy = algorithm.on_policy
    return Plan(
        config=config,
        spec=algorithm.spec,
        played=evaluation_environment(config),
        folder=folder,
        samplers=samplers,
        envs=envs,
        steps=settings.steps,
        batch_size=samplers * envs * settings.steps if on_policy else config.algorithm.batch_size,
        updates=1 if on_policy else updates,
        on_policy=on_policy,
        fields=fields_of(algorithm, acting),
        acting=acting,
    )
