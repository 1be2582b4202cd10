# SPDX-License-Identifier: Apache-2.0
"""The tuner: how many samplers, environments, transitions a batch and updates a dispatch.

It maximises the update frame rate, subject to a sampling rate that must be reached and a batch that
must not be exceeded, by raising one thing after the other for as long as it pays, each measured on
this machine with the real environment and network:

1. environments of one sampler, for as long as a step gets cheaper;
2. samplers, until they reach the rate beside a learner at work;
3. the batch, doubled up to the largest allowed, and updates in a dispatch for as long as it takes
   but a moment.

On-policy, the batch is the algorithm's; the number of samplers that make it fastest is chosen. What
was given is not touched. The choice is kept for this machine, environment and algorithm.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.runtime.machine import processor_name, processors
from headrace.runtime.plan import Plan
from headrace.runtime.trials import Samplers, Updater
from headrace.train.cache import base_folder
from headrace.train.files import read_json, write_json

SAMPLING_TARGET = 1000.0
"""Environment steps a second that an off-policy run must make, if nobody says."""
_PAYS = 1.03
"""A step up must gain this much."""
_REACHED = 0.95
"""Of the sampling rate: less is too few steps."""
_SAMPLING_S, _UPDATE_S = 0.5, 0.8
_DISPATCH_S = 0.25
"""What a dispatch may take: so often weights are published."""
_MOST_ENVS = 64
_MOST_UPDATES = 32
FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """One setting, and what it gave."""

    samplers: int
    envs: int
    batch_size: int
    updates: int
    sampling: float | None = None
    """Environment steps a second."""
    frames: float | None = None
    """Transitions learnt from, a second."""
    compiling: float = 0.0

    def __str__(self) -> str:
        text = f"{self.samplers} x {self.envs} environments"
        if self.frames is not None:
            text += f", batch {self.batch_size} x {self.updates}: {self.frames:,.0f} frames/s"
        if self.sampling is not None:
            text += f", {self.sampling:,.0f} steps/s"
        return text


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why."""

    samplers: int
    envs: int
    batch_size: int
    updates: int
    trials: tuple[Trial, ...] = ()
    seconds: float = 0.0
    """Taken, compiling not included."""
    compiling: float = 0.0
    cached: bool = field(default=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """For the cache and the run folder."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Choice:
        """What `to_json` gave."""
        known = {name: value for name, value in data.items() if name != "format"}
        known["trials"] = tuple(Trial(**trial) for trial in data["trials"])
        return cls(**known)


def tune(plan: Plan, say: Callable[[str], None], *, use_cache: bool = True) -> Choice:
    """The best setting for this plan's environment and algorithm; what is given in it stays."""
    path = base_folder() / "tune" / f"{_key(plan)}.json"
    if use_cache and (known := _known(path)) is not None:
        say(f"tuned before: {_described(known)}")
        return known
    choice = _Search(plan, say).run()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, choice.to_json())
    say(
        f"tuned in {choice.seconds:.1f} s (and {choice.compiling:.1f} s of compiling): "
        f"{_described(choice)}"
    )
    return choice


def applied(plan: Plan, choice: Choice) -> Plan:
    """The plan with what was chosen."""
    config = plan.config
    if not plan.on_policy:
        algorithm = replace(config.algorithm, batch_size=choice.batch_size)
        settings = config.settings
        if settings.replay_ratio is None and settings.sampling_rate is None:
            settings = replace(settings, sampling_rate=SAMPLING_TARGET)  # as it was measured
        config = replace(config, algorithm=algorithm, settings=settings)
    return replace(
        plan,
        config=config,
        samplers=choice.samplers,
        envs=choice.envs,
        batch_size=choice.batch_size,
        updates=choice.updates,
    )


class _Search:
    """One run of the tuner."""

    def __init__(self, plan: Plan, say: Callable[[str], None]):
        self._plan, self._say, self._settings = plan, say, plan.settings
        self._trials: list[Trial] = []
        self._compiling = 0.0

    def run(self) -> Choice:
        """All steps."""
        begin = time.perf_counter()
        if self._plan.on_policy:
            best = self._on_policy()
        else:
            with Updater(self._plan) as updater:
                updater.ready()
                began = time.perf_counter()
                self._compiling += began - begin  # JAX's import: a run has to do it anyway
                best = self._off_policy(updater)
        seconds = time.perf_counter() - begin - self._compiling
        return Choice(
            best.samplers,
            best.envs,
            best.batch_size,
            best.updates,
            tuple(self._trials),
            round(seconds, 2),
            round(self._compiling, 2),
        )

    def _on_policy(self) -> Trial:
        """As many samplers as make the rollouts fastest; environments are divided among them."""
        total = self._plan.samplers * self._plan.envs
        given = self._settings.samplers
        best = None
        for samplers in [given] if given else range(1, processors() + 1):
            if total % samplers:
                continue
            trial = self._sampling(samplers, total // samplers)
            if best is None or (trial.sampling or 0) > _PAYS * (best.sampling or 0):
                best = trial
        if best is None:
            raise HeadraceError(f"{total} environments cannot be divided among {given} samplers")
        return replace(best, batch_size=self._plan.batch_size, updates=1)

    def _off_policy(self, updater: Updater) -> Trial:
        envs = self._settings.envs_per_sampler or self._envs()
        target = self._settings.sampling_rate or SAMPLING_TARGET
        given = self._settings.samplers
        trial = None
        for samplers in [given] if given else range(1, processors() + 1):
            trial, sampled = self._beside(updater, samplers, envs, target)
            if sampled >= _REACHED * target:
                break
        assert trial is not None
        return trial

    def _envs(self) -> int:
        """Environments of one sampler: as many as make a step cheaper."""
        best, envs = self._sampling(1, 4), 8
        while envs <= _MOST_ENVS:
            trial = self._sampling(1, envs)
            if (trial.sampling or 0) < _PAYS * (best.sampling or 0):
                break
            best, envs = trial, 2 * envs
        return best.envs

    def _sampling(self, samplers: int, envs: int) -> Trial:
        plan = replace(self._plan, samplers=samplers, envs=envs)
        free = replace(plan.settings, sampling_rate=None)
        plan = replace(plan, config=replace(plan.config, settings=free))
        with Samplers(plan, plan.acting) as running:
            running.begun()
            rate = running.rate(_SAMPLING_S)
        return self._note(Trial(samplers, envs, plan.batch_size, plan.updates, sampling=rate))

    def _beside(
        self, updater: Updater, samplers: int, envs: int, target: float
    ) -> tuple[Trial, float]:
        """The best batch beside these samplers, and how many steps a second these made."""
        plan = replace(self._plan, samplers=samplers, envs=envs)
        paced = replace(plan.settings, sampling_rate=self._settings.sampling_rate or target)
        plan = replace(plan, config=replace(plan.config, settings=paced))
        smallest = largest = self._plan.batch_size
        if not _batch_is_given(self._plan):
            largest = max(smallest, self._settings.largest_batch or 2 * smallest)
        with Samplers(plan, plan.acting) as running:
            running.begun()
            begin, before = time.perf_counter(), running.channels.counters.sampled()
            best, batch, rate = None, smallest, 0.0
            while batch <= largest:
                updates = self._settings.updates_per_dispatch or _fitting(batch, rate)
                trial = self._updates(updater, running, samplers, envs, batch, updates)
                rate = trial.frames or 0.0
                better = _fitting(batch, rate)
                if not self._settings.updates_per_dispatch and better > 2 * updates:
                    trial = self._updates(updater, running, samplers, envs, batch, better)
                if best is not None and _pays(best, over=trial):
                    # Or had the machine something else to do just then? Both again, in turn.
                    both = (best.batch_size, best.updates), (batch, trial.updates)
                    best, trial = (
                        self._updates(updater, running, samplers, envs, *one) for one in both
                    )
                    if _pays(best, over=trial):
                        break
                if best is None or (trial.frames or 0) > (best.frames or 0):
                    best = trial
                batch = largest if batch < largest < 2 * batch else 2 * batch
            # Steps are counted as they are handed over: one round of them may be under way.
            steps = running.channels.counters.sampled() - before + plan.iteration
            sampled = steps / (time.perf_counter() - begin)
        assert best is not None
        return best, sampled

    def _updates(
        self, updater: Updater, running: Samplers, samplers: int, envs: int, batch: int, count: int
    ) -> Trial:
        before, begin = running.channels.counters.sampled(), time.perf_counter()
        measured = updater.measure(batch, count, _UPDATE_S)
        sampled = running.channels.counters.sampled() - before
        self._compiling += measured.compiling
        rate = sampled / (time.perf_counter() - begin)
        return self._note(
            Trial(samplers, envs, batch, count, rate, measured.frames, measured.compiling)
        )

    def _note(self, trial: Trial) -> Trial:
        self._trials.append(trial)
        self._say(f"tuning: {trial}")
        return trial


def _pays(trial: Trial, *, over: Trial) -> bool:
    """Whether it makes more frames, by more than measurements differ."""
    return (trial.frames or 0) > _PAYS * (over.frames or 0)


def _fitting(batch: int, frames: float) -> int:
    """Updates that a dispatch has time for: a power of two; few where nothing is known yet."""
    if not frames:
        return 8
    fitting = int(_DISPATCH_S * frames / batch)
    return min(_MOST_UPDATES, 1 << max(1, fitting).bit_length() - 1)


def _batch_is_given(plan: Plan) -> bool:
    """Whether the batch is another than the algorithm's own."""
    algorithm = plan.config.algorithm
    return algorithm.batch_size != type(algorithm)().batch_size


def _key(plan: Plan) -> str:
    """All that the choice hangs on."""
    settings = plan.settings
    names = ("samplers", "envs_per_sampler", "updates_per_dispatch", "sampling_rate",
             "largest_batch", "num_envs", "steps", "learner_threads", "actor_device",
             "critic_device")  # fmt: skip
    told = {
        "format": FORMAT,
        "machine": [processor_name(), processors()],
        "env": [plan.config.env, plan.config.definition, sorted(plan.config.options.items())],
        "algo": [plan.config.algo, asdict(plan.config.algorithm)],
        "given": {name: getattr(settings, name) for name in names},
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:24]


def _known(path: Path) -> Choice | None:
    try:
        found = read_json(path)
        return replace(Choice.from_json(found), cached=True) if found["format"] == FORMAT else None
    except (HeadraceError, KeyError, TypeError):
        return None


def _described(choice: Choice) -> str:
    plural = "s" if choice.samplers > 1 else ""
    return (
        f"{choice.samplers} sampler{plural} x {choice.envs} environments, batch "
        f"{choice.batch_size}, {choice.updates} updates a dispatch"
    )
