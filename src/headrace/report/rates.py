# SPDX-License-Identifier: Apache-2.0
"""How far a long piece of work is, and how fast it goes."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from headrace.collect.batch import Batch
from headrace.report.format import quantity

_SAY_EVERY_S = 2.0


class Rates:
    """A bar on a terminal; elsewhere a line every few seconds."""

    def __init__(self, console: Console, batches: int):
        self._console, self._batches = console, batches
        self._bar = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=batches)
        self._start = self._said = time.perf_counter()
        self._transitions = self._bytes = 0

    def __enter__(self) -> Self:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take it away."""
        self._bar.stop()

    def begin(self, done: int) -> None:
        """From here on it counts."""
        self._start = self._said = time.perf_counter()
        self._bar.update(self._task, completed=done)

    def add(self, done: int, batch: Batch) -> None:
        """One more batch is there."""
        self._transitions += batch.num_envs * batch.steps
        self._bytes += int(batch.transition_bytes() * batch.num_envs * batch.steps)
        self.say(done, self._rate())

    def summary(self) -> str:
        """The rate, if anything was made."""
        return f" ({self._rate()})" if self._transitions else ""

    def say(self, done: int, what: str) -> None:
        """Where it is."""
        self._bar.update(self._task, completed=done, description=what)
        now = time.perf_counter()
        if not self._console.is_terminal and now - self._said > _SAY_EVERY_S:
            self._said = now
            line = f"{done:,} of {self._batches:,} batches: {what}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _rate(self) -> str:
        elapsed = max(time.perf_counter() - self._start, 1e-9)
        written = quantity(self._bytes / elapsed)
        return f"{quantity(self._transitions / elapsed)} transitions/s, {written}B/s"
