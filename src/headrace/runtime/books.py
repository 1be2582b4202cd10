# SPDX-License-Identifier: Apache-2.0
"""The books of an asynchronous run: what was counted, evaluated, and is written and shown.

The files and figures are those of every other run; what is different is that counts come from
memory that others write, and evaluations from a process of their own.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from headrace.learn.algorithm import Acting, Algorithm
from headrace.runtime import counters
from headrace.runtime import status as shown
from headrace.runtime.crew import Crew
from headrace.runtime.machine import Usage
from headrace.runtime.plan import Channels, Plan
from headrace.train.config import RunConfig
from headrace.train.files import write_json
from headrace.train.metrics import MetricsLog
from headrace.train.model import save_model
from headrace.train.run_folder import RESULT, RunFolder
from headrace.train.watch import Averages, Ending, Moment, Rates, Run, Scores, Watch

_WINDOW_S = 5.0
"""Over which rates are measured."""
_EVENTS = 50


class Counted(NamedTuple):
    """So far."""

    env_steps: int = 0
    updates: int = 0
    update_frames: int = 0
    evaluated_steps: int = 0


class Books:
    """Of one run; `meta` is what its last checkpoint said."""

    def __init__(
        self, config: RunConfig, folder: RunFolder, watch: Watch, meta: dict[str, Any] | None
    ):
        self._config, self._settings = config, config.settings
        self._folder, self._watch = folder, watch
        self._began = time.perf_counter()
        self._evaluations: list[Scores] = []
        self._best: Scores | None = None
        self._training = Averages()
        self._metrics: dict[str, float] = {}
        self._events: deque[shown.RunEvent] = deque(maxlen=_EVENTS)
        self.before, self._seconds_before, self.lives = Counted(), 0.0, 0
        resumed = None
        if meta is not None:
            self.before = Counted(meta["env_steps"], meta["updates"], meta["update_frames"])
            self._seconds_before = meta["seconds"]
            self._evaluations = [Scores(*scores) for scores in meta["evaluations"]]
            self._best = None if meta["best"] is None else Scores(*meta["best"])
            self._training.add(np.array(meta["train_returns"], np.float32))
            self.lives = meta.get("lives", 0) + 1
            resumed = self.before.env_steps
        self.counted = self.before
        self._window: deque[tuple[float, Counted]] = deque()
        self._episodes = 0
        self.evaluated_version = 0
        """Of the weights that were evaluated last."""
        self._log = MetricsLog(folder.path, resumed)
        watch.start(config, folder.path)

    @property
    def seconds(self) -> float:
        """Worked, in all."""
        return self._seconds_before + time.perf_counter() - self._began

    @property
    def best_mean(self) -> float | None:
        """Of the best evaluation."""
        return None if self._best is None else self._best.mean

    # ---- what is told ----

    def count(self, env_steps: int, updates: int, frames: int, evaluated: int) -> None:
        """Where the counters are; those of this process's own run."""
        before = self.before
        self.counted = Counted(
            before.env_steps + env_steps,
            before.updates + updates,
            before.update_frames + frames,
            evaluated,
        )
        now = time.perf_counter()
        self._window.append((now, self.counted))
        while now - self._window[0][0] > _WINDOW_S:
            self._window.popleft()

    def episodes(self, returns: np.ndarray) -> None:
        """Of samplers' episodes that ended."""
        self._episodes += len(returns)
        self._training.add(returns)

    def learnt(self, metrics: dict[str, float]) -> None:
        """The newest metrics of the algorithm."""
        self._metrics = metrics

    def evaluated(
        self, *, env_steps: int, mean: float, spread: float, episodes: int, version: int
    ) -> None:
        """An evaluation; whoever made it has kept the policy, if it was the best."""
        scores = Scores(env_steps, self.seconds, mean, spread, episodes)
        self.evaluated_version = version
        self._evaluations.append(scores)
        if self._best is None or mean >= self._best.mean:
            self._best = scores
            self.event(f"best so far: {mean:.1f} at {env_steps:,} steps (version {version})")
        moment = self.moment()
        self._write(moment, scores)
        self._watch.evaluated(moment)

    def event(self, text: str) -> None:
        """Something worth a line."""
        self._events.append(shown.RunEvent(time.time(), text))

    def say(self, text: str) -> None:
        """An event that whoever watches is told as well."""
        self.event(text)
        self._watch.say(text)

    def tell(self) -> None:
        """The moment, to whoever watches and to the log."""
        moment = self.moment()
        self._write(moment)
        self._watch.moment(moment)

    # ---- what is made of it ----

    def ending(self, stop_asked: bool) -> Ending | None:
        """Whether the run is at its end, and why."""
        settings = self._settings
        newest = self._evaluations[-1] if self._evaluations else None
        if settings.until is not None and newest and newest.mean >= settings.until:
            return "until"
        if self.counted.env_steps >= settings.total_steps:
            return "total-steps"
        if settings.time_limit is not None and self.seconds >= settings.time_limit:
            return "time-limit"
        return "interrupted" if stop_asked else None

    def meta(self) -> dict[str, Any]:
        """For a checkpoint; the learner adds what it alone knows."""
        newest = self._evaluations[-1] if self._evaluations else None
        return {
            "env_steps": self.counted.env_steps,
            "seconds": self.seconds,
            "score": newest.mean if newest else None,
            "best": self._best,
            "evaluations": self._evaluations,
            "train_returns": self._training.returns,
            "lives": self.lives,
        }

    def end(self, ending: Ending) -> Run:
        """The result, written and returned."""
        newest = self._evaluations[-1] if self._evaluations else None
        run = Run(
            self._folder.path,
            ending,
            self.counted.env_steps,
            self.counted.updates,
            round(self.seconds, 4),
            self._best,
            newest,
        )
        told = dataclasses.asdict(run)
        told |= {"best": _as_json(run.best), "last": _as_json(run.last)}
        del told["folder"]
        write_json(self._folder.path / RESULT, told)
        return run

    def save_policy(self, algorithm: Algorithm, acting: Acting) -> None:
        """As the run's model; what it scores is not known."""
        hyper_parameters = dataclasses.asdict(algorithm.config)
        about = {"env_steps": self.counted.env_steps, "evaluation": None}
        save_model(self._folder.path, algorithm, acting, hyper_parameters, **about)

    def close(self) -> None:
        """Close the files, and let go of the terminal."""
        self._watch.stop()
        self._log.close()

    def rates(self) -> shown.Rates:
        """Over the last seconds."""
        if len(self._window) < 2:
            return shown.Rates()
        (begin, first), (end, last) = self._window[0], self._window[-1]
        seconds = max(end - begin, 1e-9)
        steps, updates, frames, evaluated = (
            (after - before) / seconds for before, after in zip(first, last, strict=True)
        )
        return shown.Rates(steps, updates, frames, evaluated)

    def moment(self) -> Moment:
        """As every run has it."""
        rates = self.rates()
        return Moment(
            env_steps=self.counted.env_steps,
            updates=self.counted.updates,
            seconds=self.seconds,
            total_steps=self._settings.total_steps,
            seconds_left=self._seconds_left(rates.sampling),
            rates=Rates(rates.sampling, rates.update, rates.update_frames),
            train_return=self._training.mean,
            metrics=self._metrics,
            evaluations=tuple(self._evaluations),
            best=self._best,
        )

    def status(
        self, state: shown.RunState, plan: Plan, channels: Channels, crew: Crew, usage: Usage
    ) -> shown.Status:
        """All that can be shown."""
        learner, ring = channels.counters.learner, channels.ring
        ages = learner.get(counters.STALE_COUNT)
        newest = self._evaluations[-1] if self._evaluations else None
        cpu, memory = usage.of(os.getpid())
        ours = shown.ProcessStatus("supervisor", 0, os.getpid(), "running", 0, "", cpu, memory)
        return shown.Status(
            time=time.time(),
            elapsed=self.seconds,
            state=state,
            env=self._config.env,
            algo=self._config.algo,
            mode=self._config.mode,
            env_steps=self.counted.env_steps,
            updates=self.counted.updates,
            frames=self.counted.update_frames,
            episodes=self._episodes,
            policy_version=channels.weights.version,
            rates=self.rates(),
            ring_fill=None if ring is None else ring.fill / ring.capacity,
            ring_capacity=None if ring is None else ring.capacity,
            staleness_mean=learner.get(counters.STALE_SUM) / ages if ages else None,
            staleness_max=learner.get(counters.STALE_MAX) if ages else None,
            staleness_bound=plan.settings.staleness if plan.on_policy else None,
            dropped=learner.get(counters.DROPPED) if plan.on_policy else None,
            train_return=self._training.mean,
            eval_return=newest.mean if newest else None,
            best_return=self.best_mean,
            processes=(ours, *(member.status(usage) for member in crew.members)),
            events=tuple(self._events),
            settings={
                "samplers": plan.samplers,
                "envs_per_sampler": plan.envs,
                "batch_size": plan.batch_size,
                "updates_per_dispatch": plan.updates,
            },
        )

    def _seconds_left(self, sampling: float) -> float | None:
        left = []
        if sampling:
            left.append(max(self._settings.total_steps - self.counted.env_steps, 0) / sampling)
        if self._settings.time_limit is not None:
            left.append(max(self._settings.time_limit - self.seconds, 0.0))
        return min(left) if left else None

    def _write(self, moment: Moment, scores: Scores | None = None) -> None:
        rates = moment.rates
        scalars: dict[str, float] = dict(moment.metrics)
        scalars |= {"updates": moment.updates, "rate/env_steps": rates.env_steps}
        scalars |= {"rate/updates": rates.updates, "rate/update_frames": rates.update_frames}
        if moment.train_return is not None:
            scalars["train/return"] = moment.train_return
        if scores is not None:
            scalars["evaluation/return"] = scores.mean
            scalars["evaluation/spread"] = scores.spread
        self._log.write(moment.env_steps, moment.seconds, scalars)


def _as_json(scores: Scores | None) -> dict[str, Any] | None:
    return None if scores is None else scores._asdict()
