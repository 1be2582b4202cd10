# SPDX-License-Identifier: Apache-2.0
"""Saying what is being measured: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """What a ladder tells while it works."""

    def start(self, total: int) -> None:
        """So many things will be measured."""

    def begin(self, what: str) -> None:
        """The next of them is this one."""

    def end(self, outcome: str) -> None:
        """It is done."""

    def stop(self) -> None:
        """Nothing follows."""


class Silent(Progress):
    """Says nothing."""


class Lines(Progress):
    """A line for each, once it is done."""

    def __init__(self, console: Console):
        self._console = console
        self._total = self._done = 0
        self._what = ""

    def start(self, total: int) -> None:
        """Remember how many."""
        self._total = total

    def begin(self, what: str) -> None:
        """Remember what."""
        self._what = what

    def end(self, outcome: str) -> None:
        """Print both."""
        self._done += 1
        line = f"[{self._done}/{self._total}] {self._what}: {outcome}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class Bar(Progress):
    """A bar that is gone when the table comes."""

    def __init__(self, console: Console):
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,  # nothing is drawn while something is timed
        )
        self._task = self._bar.add_task("", total=None)

    def start(self, total: int) -> None:
        """Show the bar."""
        self._bar.update(self._task, total=total)
        self._bar.start()

    def begin(self, what: str) -> None:
        """Name what is measured beside it."""
        self._bar.update(self._task, description=what, refresh=True)

    def end(self, outcome: str) -> None:
        """Move on."""
        self._bar.advance(self._task)
        self._bar.refresh()

    def stop(self) -> None:
        """Take it away."""
        self._bar.stop()


def progress_on(console: Console) -> Progress:
    """The one that suits this console."""
    return Bar(console) if console.is_terminal else Lines(console)
