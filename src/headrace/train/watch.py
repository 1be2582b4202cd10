# SPDX-License-Identifier: Apache-2.0
"""What a run tells whoever watches it: a terminal, a log, nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np

from headrace.train.config import RunConfig

Ending = Literal["until", "total-steps", "time-limit", "interrupted"]


class Scores(NamedTuple):
    """An evaluation."""

    env_steps: int
    """Of training before it."""
    seconds: float
    """Worked until then."""
    mean: float
    spread: float
    """Standard deviation of the episodes' returns."""
    episodes: int


class Rates(NamedTuple):
    """Per second of the last moments; evaluation, checkpoints and compiling are not in it."""

    env_steps: float = 0.0
    updates: float = 0.0
    update_frames: float = 0.0
    generation_share: float | None = None
    """Of the time of iterations; None where generation and update are one program."""


@dataclass(frozen=True)
class Moment:
    """Where a run is."""

    env_steps: int
    updates: int
    seconds: float
    """Worked, those before a resume included."""
    total_steps: int
    seconds_left: float | None
    """As it goes now, until `total_steps` or the time limit."""
    rates: Rates
    train_return: float | None
    """Mean of the last episodes of training; None before the first has ended."""
    metrics: dict[str, float] = field(default_factory=dict)
    evaluations: tuple[Scores, ...] = ()
    """All of them, oldest first."""
    best: Scores | None = None


@dataclass(frozen=True)
class Run:
    """What came out: `headrace.train` returns it, and result.json has it."""

    folder: Path
    ending: Ending
    env_steps: int
    updates: int
    seconds: float
    best: Scores | None
    last: Scores | None

    @property
    def solved(self) -> bool:
        """Whether it ended because the return that was asked for was reached."""
        return self.ending == "until"


class Watch(Protocol):
    """Is told in this order; what it takes to tell is the run's loss."""

    def start(self, config: RunConfig, folder: Path) -> None:
        """It begins, or continues."""

    def moment(self, moment: Moment) -> None:
        """Some iterations are done: many times a second, perhaps."""

    def evaluated(self, moment: Moment) -> None:
        """The newest of its evaluations has just been made."""

    def say(self, text: str) -> None:
        """One line, worth reading."""

    def stop(self) -> None:
        """Nothing follows."""


class Silent(Watch):
    """Says nothing."""


class Averages:
    """Mean of the last episodes' returns."""

    def __init__(self, count: int = 100):
        self._count = count
        self.returns: list[float] = []

    def add(self, returns: np.ndarray) -> None:
        """Episodes that have ended."""
        self.returns = [*self.returns, *np.asarray(returns[-self._count :]).tolist()]
        self.returns = self.returns[-self._count :]

    @property
    def mean(self) -> float | None:
        """None before the first."""
        return sum(self.returns) / len(self.returns) if self.returns else None
