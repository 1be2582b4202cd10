# SPDX-License-Identifier: Apache-2.0
"""Watching a run in a terminal: what it has learnt, how fast it goes, how long it will take."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headrace.report.format import figures, percent, quantity
from headrace.report.sketch import sketch
from headrace.report.training_log import clock
from headrace.train.config import RunConfig
from headrace.train.watch import Moment, Watch

_DRAW_EVERY_S = 0.2
_HEIGHT, _MOST_WIDTH = 8, 100
_NONE = "–"


class Terminal(Watch):
    """A panel that is drawn anew a few times a second, and stays when the run has ended."""

    def __init__(self, console: Console):
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._title, self._drawn_at = "", 0.0
        self._moment: Moment | None = None

    def start(self, config: RunConfig, folder: Path) -> None:
        """Show what is trained."""
        how = f"{config.algo} · {config.mode} · {config.definition} · seed {config.settings.seed}"
        self._title = f"{config.env} · {how}"
        self._live.start()
        first = "compiling …" if config.learner == "xla" else "starting …"
        self._live.update(Panel(Text(first), title=self._title), refresh=True)

    def moment(self, moment: Moment) -> None:
        """Draw, unless it was done just now."""
        self._moment = moment
        if time.perf_counter() - self._drawn_at > _DRAW_EVERY_S:
            self._draw()

    def evaluated(self, moment: Moment) -> None:
        """As any moment."""
        self.moment(moment)

    def say(self, text: str) -> None:
        """Above the panel."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Draw a last time."""
        if self._moment is not None:
            self._draw()
        self._live.stop()

    def _draw(self) -> None:
        assert self._moment is not None
        self._live.update(self._panel(self._moment), refresh=True)
        self._drawn_at = time.perf_counter()

    def _panel(self, moment: Moment) -> Panel:
        width = min(self._console.width, _MOST_WIDTH)
        parts = [self._curve(moment, width - 4), _numbers(moment), _losses(moment)]
        return Panel(Group(*parts), title=self._title, subtitle=_where(moment), width=width)

    def _curve(self, moment: Moment, width: int) -> Text:
        scores = moment.evaluations
        if not scores:
            return Text("no evaluation yet")
        x, y = [one.env_steps for one in scores], [one.mean for one in scores]
        plain = not self._console.encoding.lower().startswith("utf")
        return Text("\n".join(sketch(x, y, width, _HEIGHT, plain=plain)), style="cyan")


def _numbers(moment: Moment) -> Table:
    table = Table.grid(padding=(0, 3), expand=True)
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)  # pyright: ignore[reportArgumentType]
    last = moment.evaluations[-1] if moment.evaluations else None
    rates = moment.rates
    share = rates.generation_share
    rows = [
        ("evaluation", _NONE if last is None else f"{figures(last.mean)} ± {figures(last.spread)}",
         "environment steps/s", _rate(rates.env_steps)),
        ("best", _NONE if moment.best is None else figures(moment.best.mean),
         "updates/s", _rate(rates.updates)),
        ("training", _NONE if moment.train_return is None else figures(moment.train_return),
         "update frames/s", _rate(rates.update_frames)),
        ("updates", f"{moment.updates:,}", "generation | update",
         "one program" if share is None else f"{percent(share)} | {percent(1 - share)}"),
    ]  # fmt: skip
    for row in rows:
        table.add_row(*row)
    return table


def _losses(moment: Moment) -> Text:
    parts = [f"{name} {figures(value)}" for name, value in moment.metrics.items()]
    return Text(" · ".join(parts), style="dim")


def _where(moment: Moment) -> str:
    left = "" if moment.seconds_left is None else f" · {clock(moment.seconds_left)} left"
    steps = f"{moment.env_steps:,} of {moment.total_steps:,} steps"
    return f"{steps} · {clock(moment.seconds)}{left}"


def _rate(value: float) -> str:
    return quantity(value) if value else _NONE
