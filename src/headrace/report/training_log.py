# SPDX-License-Identifier: Apache-2.0
"""Watching a run where there is no terminal: a line for each evaluation."""

from __future__ import annotations

from pathlib import Path

from headrace.report.format import figures, quantity
from headrace.train.config import RunConfig
from headrace.train.watch import Moment, Run, Scores, Watch


class Lines(Watch):
    """On standard output, each as soon as it is known."""

    def start(self, config: RunConfig, folder: Path) -> None:
        """What is trained, and where it goes."""
        how = f"{config.algo}, {config.mode}, {config.definition}, seed {config.settings.seed}"
        self.say(f"{config.env} ({how}) into {folder}")

    def evaluated(self, moment: Moment) -> None:
        """What it scored."""
        last = moment.evaluations[-1]
        parts = [f"{moment.env_steps:,} steps", clock(moment.seconds), f"return {score(last)}"]
        if moment.train_return is not None:
            parts.append(f"training {figures(moment.train_return)}")
        if moment.rates.env_steps:
            parts.append(f"{quantity(moment.rates.env_steps)} steps/s")
            parts.append(f"{quantity(moment.rates.updates)} updates/s")
        self.say(" | ".join(parts))

    def say(self, text: str) -> None:
        """Print it."""
        print(text, flush=True)


def outcome(run: Run) -> str:
    """How a run ended, in one line."""
    how = {
        "until": "solved",
        "total-steps": "done",
        "time-limit": "time is up",
        "interrupted": "stopped",
    }[run.ending]
    where = f"after {run.env_steps:,} environment steps, {clock(run.seconds)}"
    scored = ""
    if run.last is not None:
        scored = f"; return {score(run.last)}"
        if run.best is not None and run.best != run.last:
            scored += f", best {figures(run.best.mean)}"
    return f"{how} {where}{scored}; {run.folder}"


def score(scores: Scores) -> str:
    """Mean and spread of an evaluation."""
    many = f"{scores.episodes} episodes"
    return f"{figures(scores.mean)} ± {figures(scores.spread)} ({many})"


def clock(seconds: float) -> str:
    """A time as a clock has it: 3.21 s, 4:05, 1:02:33."""
    if seconds < 60:
        return f"{figures(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
