# SPDX-License-Identifier: Apache-2.0
"""The loop around a trainer: iterations, evaluations, checkpoints, what is told, and the end.

What is learnt depends on the trainer alone. Evaluations come after the same environment steps in
every run of the same settings, however its time is divided up; so a run that was stopped and
resumed ends as one that was not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting
from headrace.train import trees
from headrace.train.checkpoint import Loaded
from headrace.train.config import RunConfig
from headrace.train.files import write_json
from headrace.train.metrics import MetricsLog
from headrace.train.model import save_model
from headrace.train.pace import Pace
from headrace.train.run_folder import RESULT, RunFolder
from headrace.train.trainer import NOTHING, Trainer
from headrace.train.watch import Averages, Ending, Moment, Run, Scores, Watch

Evaluate = Callable[[Acting], np.ndarray]
"""Of parameters to act with: the returns of some episodes."""


class Runner:
    """Drives a trainer until the run is at its end. `stop_asked` is looked at between calls."""

    def __init__(
        self,
        config: RunConfig,
        trainer: Trainer,
        folder: RunFolder,
        evaluate: Evaluate,
        watch: Watch,
        stop_asked: Callable[[], bool] = lambda: False,
    ):
        self._config, self._settings = config, config.settings
        self._trainer, self._folder = trainer, folder
        self._evaluate, self._watch, self._stop_asked = evaluate, watch, stop_asked
        self._checkpoints = folder.checkpoints(self._settings.keep_checkpoints)
        self._pace = Pace(trainer.num_envs * trainer.steps, self._settings)
        self._progress = NOTHING
        self._evaluations: list[Scores] = []
        self._best: Scores | None = None
        self._training = Averages()
        self._log: MetricsLog | None = None
        self._unsaved: tuple[Acting, Scores] | None = None
        """The best policy, until it is written."""
        self._saved_at = -1
        """Environment steps at the last checkpoint."""
        self._log_from: int | None = None
        """Environment steps up to which a log that is there still holds."""

    def continue_from(self, loaded: Loaded | None) -> None:
        """Be where a checkpoint was made; None: where the run began."""
        if loaded is None:
            self._log_from = -1
            return
        meta = loaded.meta
        try:
            self._trainer.load_state(trees.filled(self._trainer.state, loaded.arrays))
        except HeadraceError as error:
            raise HeadraceError(f"{loaded.path} does not belong to this run: {error}") from error
        self._evaluations = [Scores(*scores) for scores in meta["evaluations"]]
        self._best = None if meta["best"] is None else Scores(*meta["best"])
        self._training.add(np.array(meta["train_returns"], np.float32))
        done = {name: meta[name] for name in ("env_steps", "updates", "update_frames")}
        self._progress = NOTHING._replace(**done)
        self._pace.continue_from(self._progress, meta["seconds"])
        self._saved_at = self._log_from = meta["env_steps"]

    def run(self) -> Run:
        """To the end. An error leaves the last good checkpoint."""
        self._log = MetricsLog(self._folder.path, self._log_from)
        self._watch.start(self._config, self._folder.path)
        try:
            ending = self._ending()
            while ending is None:
                self._iterate()
                if self._pace.evaluation_due():
                    self._test()
                ending = self._ending()
                if ending is None and self._pace.checkpoint_due():
                    self._save()
            return self._end(ending)
        finally:
            with contextlib.suppress(HeadraceError):  # of an error on the way is told already
                self._keep_model()
            self._watch.stop()
            self._log.close()

    @property
    def _newest(self) -> Scores | None:
        """The last evaluation."""
        return self._evaluations[-1] if self._evaluations else None

    @property
    def _current(self) -> Scores | None:
        """The evaluation of what has been learnt until now."""
        newest = self._newest
        return newest if newest and newest.env_steps == self._progress.env_steps else None

    def _iterate(self) -> None:
        """As many iterations as take a moment, no further than to the next evaluation."""
        iterations = self._pace.iterations()
        with self._pace.timed():
            self._progress = self._trainer.advance(iterations)
        self._pace.note(self._progress)
        self._require_numbers(self._progress.metrics)
        self._training.add(self._progress.episode_returns)
        moment = self._moment()
        if self._pace.log_due():
            self._write(moment)
        self._watch.moment(moment)

    def _test(self) -> None:
        """Evaluate, and keep the policy if it is the best so far."""
        acting = self._trainer.acting()
        self._require_finite(acting)
        returns = self._evaluate(acting)
        scores = Scores(
            self._progress.env_steps,
            self._pace.seconds,
            float(np.mean(returns)),
            float(np.std(returns)),
            len(returns),
        )
        self._evaluations.append(scores)
        if self._best is None or scores.mean >= self._best.mean:
            self._best, self._unsaved = scores, (acting, scores)
            if self._pace.model_due():
                self._keep_model()
        moment = self._moment()
        self._write(moment, scores)
        self._watch.evaluated(moment)

    def _ending(self) -> Ending | None:
        settings, current = self._settings, self._current
        if settings.until is not None and current and current.mean >= settings.until:
            return "until"
        if self._progress.env_steps >= settings.total_steps:
            return "total-steps"
        if settings.time_limit is not None and self._pace.seconds >= settings.time_limit:
            return "time-limit"
        return "interrupted" if self._stop_asked() else None

    def _end(self, ending: Ending) -> Run:
        if ending in ("total-steps", "time-limit") and self._current is None:
            self._test()
        self._save()
        if self._best is None:  # interrupted before the first evaluation
            self._save_model(self._trainer.acting(), None)
        run = Run(
            self._folder.path,
            ending,
            self._progress.env_steps,
            self._progress.updates,
            round(self._pace.seconds, 4),
            self._best,
            self._newest,
        )
        told = dataclasses.asdict(run) | {"best": _as_json(run.best), "last": _as_json(run.last)}
        del told["folder"]
        write_json(self._folder.path / RESULT, told)
        return run

    def _save(self) -> None:
        """A checkpoint, unless there is one of this moment, and the best policy."""
        self._keep_model()
        self._pace.checkpoint_done()
        done = self._progress.env_steps
        if done == self._saved_at:
            return
        self._require_finite(self._trainer.acting())
        meta = {
            "env_steps": done,
            "updates": self._progress.updates,
            "update_frames": self._progress.update_frames,
            "seconds": self._pace.seconds,
            "score": self._current.mean if self._current else None,
            "best": self._best,
            "evaluations": self._evaluations,
            "train_returns": self._training.returns,
        }
        self._checkpoints.save(self._trainer.state, meta)
        self._saved_at = done

    def _keep_model(self) -> None:
        """Write the best policy, unless it is there already."""
        if self._unsaved is not None:
            self._save_model(*self._unsaved)
            self._unsaved = None

    def _save_model(self, acting: Acting, scores: Scores | None) -> None:
        algorithm = self._trainer.algorithm
        hyper_parameters = dataclasses.asdict(algorithm.config)
        about = {"env_steps": self._progress.env_steps, "evaluation": _as_json(scores)}
        save_model(self._folder.path, algorithm, acting, hyper_parameters, **about)

    def _write(self, moment: Moment, scores: Scores | None = None) -> None:
        assert self._log is not None
        rates = moment.rates
        scalars: dict[str, float] = dict(moment.metrics)
        scalars |= {"updates": moment.updates, "rate/env_steps": rates.env_steps}
        scalars |= {"rate/updates": rates.updates, "rate/update_frames": rates.update_frames}
        if rates.generation_share is not None:
            scalars["rate/generation_share"] = rates.generation_share
        if moment.train_return is not None:
            scalars["train/return"] = moment.train_return
        if scores is not None:
            scalars["evaluation/return"] = scores.mean
            scalars["evaluation/spread"] = scores.spread
        self._log.write(moment.env_steps, moment.seconds, scalars)

    def _moment(self) -> Moment:
        return Moment(
            env_steps=self._progress.env_steps,
            updates=self._progress.updates,
            seconds=self._pace.seconds,
            total_steps=self._settings.total_steps,
            seconds_left=self._pace.seconds_left(),
            rates=self._pace.rates(),
            train_return=self._training.mean,
            metrics=self._progress.metrics,
            evaluations=tuple(self._evaluations),
            best=self._best,
        )

    def _require_numbers(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            if name.startswith("loss") and not math.isfinite(value):
                raise self._not_finite(f"{name} is {value}")

    def _require_finite(self, acting: Acting) -> None:
        for name, array in trees.named(acting).items():
            if not np.isfinite(array).all():
                raise self._not_finite(f"parameter {name} is not finite")

    def _not_finite(self, what: str) -> HeadraceError:
        kept = self._checkpoints.paths()
        last = f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"
        return HeadraceError(
            f"{what} after {self._progress.env_steps:,} environment steps: learning broke down. "
            f"Look at its rewards for what is not finite or very large, and try a smaller "
            f"learning rate; {last}"
        )


def _as_json(scores: Scores | None) -> dict[str, Any] | None:
    return None if scores is None else scores._asdict()
