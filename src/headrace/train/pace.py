# SPDX-License-Identifier: Apache-2.0
"""When what is due in a run, and how fast it goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headrace.train.config import Settings
from headrace.train.trainer import NOTHING, Progress
from headrace.train.watch import Rates

_CALL_S = 0.25
"""What a call of the trainer should take: so often a run can be looked at, and stopped."""
_LOG_EVERY_S = 1.0
_WINDOW = 20
"""Calls over which rates are measured."""


class _Call(NamedTuple):
    """What one call of the trainer did."""

    seconds: float
    env_steps: int
    updates: int
    update_frames: int


class Pace:
    """Of one run; `iteration` is the number of environment steps in one iteration."""

    def __init__(self, iteration: int, settings: Settings):
        self._iteration, self._settings = iteration, settings
        self._every = -(-settings.evaluation_every // iteration)
        """Iterations from one evaluation to the next."""
        self._last = -(-settings.total_steps // iteration)
        self._done = 0
        """Iterations of the run."""
        self._before = 0.0
        """Seconds worked before a resume."""
        self._began = self._checkpoint_at = time.perf_counter()
        self._model_at = self._began
        self._logged_at: float | None = None
        self._per_iteration: float | None = None
        self._progress = NOTHING
        self._calls: deque[_Call] = deque(maxlen=_WINDOW)
        self._first = True

    def continue_from(self, progress: Progress, seconds: float) -> None:
        """Count on from here."""
        self._done = progress.env_steps // self._iteration
        self._before, self._progress = seconds, progress

    @property
    def seconds(self) -> float:
        """Worked, in all."""
        return self._before + time.perf_counter() - self._began

    def iterations(self) -> int:
        """How many to do in the next call: no further than to the next evaluation."""
        left = min(self._every - self._done % self._every, self._last - self._done)
        fitting = 1 if self._per_iteration is None else int(_CALL_S / self._per_iteration)
        # A power of two: few different programs, where the number is compiled into them.
        return min(max(left, 1), 1 << max(fitting, 1).bit_length() - 1)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Around a call of the trainer."""
        self._call_began = time.perf_counter()
        yield
        self._call_seconds = time.perf_counter() - self._call_began

    def note(self, progress: Progress) -> None:
        """What the call gave."""
        before, self._progress = self._progress, progress
        call = _Call(
            self._call_seconds,
            progress.env_steps - before.env_steps,
            progress.updates - before.updates,
            progress.update_frames - before.update_frames,
        )
        count = call.env_steps // self._iteration
        self._done += count
        if self._first:  # it compiled
            self._first = False
            return
        self._per_iteration = max(call.seconds / max(count, 1), 1e-9)
        self._calls.append(call)

    def rates(self) -> Rates:
        """Over the last calls."""
        seconds = sum(call.seconds for call in self._calls)
        if not seconds:
            return Rates()
        generation, update = self._progress.generation_seconds, self._progress.update_seconds
        share = None
        if generation is not None and update is not None and generation + update > 0:
            share = generation / (generation + update)
        return Rates(
            sum(call.env_steps for call in self._calls) / seconds,
            sum(call.updates for call in self._calls) / seconds,
            sum(call.update_frames for call in self._calls) / seconds,
            share,
        )

    def seconds_left(self) -> float | None:
        """Until the last environment step or the time limit, whichever comes first."""
        rate = self.rates().env_steps
        left = []
        if rate:
            left.append(max(self._settings.total_steps - self._progress.env_steps, 0) / rate)
        if self._settings.time_limit is not None:
            left.append(max(self._settings.time_limit - self.seconds, 0.0))
        return min(left) if left else None

    def evaluation_due(self) -> bool:
        """Whether an evaluation comes after what was done last."""
        return self._done % self._every == 0

    def checkpoint_due(self) -> bool:
        """Whether the last is long ago."""
        return time.perf_counter() - self._checkpoint_at >= self._settings.checkpoint_every

    def checkpoint_done(self) -> None:
        """It was now."""
        self._checkpoint_at = time.perf_counter()

    def model_due(self) -> bool:
        """Whether the best policy is to be written now: not many times a second."""
        now = time.perf_counter()
        due = now - self._model_at >= _LOG_EVERY_S
        if due:
            self._model_at = now
        return due

    def log_due(self) -> bool:
        """Whether a line is to be written; then it is taken as written."""
        now = time.perf_counter()
        due = self._logged_at is None or now - self._logged_at >= _LOG_EVERY_S
        if due:
            self._logged_at = now
        return due
