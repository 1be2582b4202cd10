# SPDX-License-Identifier: Apache-2.0
"""What a ladder found, and the arithmetic of its tables."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from headrace.report.impact import DECK_UPDATE_SECONDS, generation_share, run_speedup
from headrace.report.limits import Limit
from headrace.report.machine import Machine
from headrace.report.measure import Measurement
from headrace.report.plan import Kind, Plan

if TYPE_CHECKING:  # it brings JAX
    from headrace.report.trained import TrainedRung


@dataclass(frozen=True)
class LeftOut:
    """A rung that could not be measured."""

    rung: str
    reason: str
    """One line."""


@dataclass(frozen=True)
class Update:
    """What a learner takes for one batch."""

    seconds: float
    source: Literal["given", "measured"]


@dataclass(frozen=True)
class Row:
    """One rung's line in the ladder."""

    measurement: Measurement
    speedup: float
    """Over the baseline."""
    above: float | None
    """Over the rung above; None: it is the first."""
    of_limit: float | None
    """The fraction of the machine's limit, of 1."""
    run_speedup: float | None
    """Of a whole training run, over the same run with the baseline, by the impact model."""
    share: float | None
    """The part of that run spent in generation, of 1."""
    deck_run_speedup: float
    """Likewise, were the update the deck's."""
    deck_share: float


@dataclass
class LadderResult:
    """Everything measured in one run; it grows while the ladder is climbed."""

    plan: Plan
    machine: Machine
    date: str
    measurements: list[Measurement] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    """One for each size of batch."""
    update: Update | None = None
    trained: list[TrainedRung] = field(default_factory=list)
    """Short training with each rung, if it was asked for."""
    not_trained: list[LeftOut] = field(default_factory=list)
    interrupted: bool = False

    @property
    def kind(self) -> Kind:
        """Which sweep this is, or "ladder"."""
        return self.plan.kind

    @property
    def baseline(self) -> str | None:
        """The rung that others are compared with: `python`, or the first there is."""
        return self.measurements[0].rung if self.measurements else None

    def limit(self, measurement: Measurement) -> Limit | None:
        """The machine's limit for the work of this measurement."""
        for limit in self.limits:
            if (limit.num_envs, limit.options) == (measurement.num_envs, measurement.options):
                return limit
        return None

    def of_limit(self, measurement: Measurement) -> float | None:
        """Its fraction of the machine's limit, of 1."""
        limit = self.limit(measurement)
        return measurement.steps_per_second / limit.steps_per_second if limit else None

    def rows(self) -> list[Row]:
        """The ladder, for measurements of one work."""
        rows = []
        for position, one in enumerate(self.measurements):
            first, above = self.measurements[0], self.measurements[max(position - 1, 0)]
            update = self.update and self.update.seconds
            rows.append(
                Row(
                    measurement=one,
                    speedup=one.steps_per_second / first.steps_per_second,
                    above=one.steps_per_second / above.steps_per_second if position else None,
                    of_limit=self.of_limit(one),
                    run_speedup=None
                    if update is None
                    else run_speedup(first.best_seconds, one.best_seconds, update),
                    share=None if update is None else generation_share(one.best_seconds, update),
                    deck_run_speedup=run_speedup(
                        first.best_seconds, one.best_seconds, DECK_UPDATE_SECONDS
                    ),
                    deck_share=generation_share(one.best_seconds, DECK_UPDATE_SECONDS),
                )
            )
        return rows

    def text(self, width: int = 100) -> str:
        """The tables of the command, as plain text."""
        from headrace.report.table import as_text

        return as_text(self, width)

    def to_json(self) -> dict[str, Any]:
        """Numbers and names alone, with every repeat."""
        settings = {
            item.name: getattr(self.plan, item.name)
            for item in dataclasses.fields(self.plan)
            if item.name != "spec"
        }
        return {
            "env": self.plan.spec.id,
            "kind": self.kind,
            "date": self.date,
            "interrupted": self.interrupted,
            "settings": settings | {"max_episode_steps": self.plan.spec.max_episode_steps},
            "machine": dataclasses.asdict(self.machine),
            "update": self.update and dataclasses.asdict(self.update),
            "limits": [
                dataclasses.asdict(limit)
                | {"steps_per_second": limit.steps_per_second, "binding": limit.binding}
                for limit in self.limits
            ],
            "measurements": [self._measurement_json(one) for one in self.measurements],
            "ladder": [self._row_json(row) for row in self.rows()] if self.kind == "ladder" else [],
            "trained": [self._trained_json(one) for one in self.trained],
            "left_out": [dataclasses.asdict(one) for one in self.left_out],
        }

    def _measurement_json(self, one: Measurement) -> dict[str, Any]:
        return dataclasses.asdict(one) | {
            "steps_per_second": one.steps_per_second,
            "spread": one.spread,
            "of_limit": self.of_limit(one),
        }

    def _trained_json(self, one: TrainedRung) -> dict[str, Any]:
        first = self.trained[0]
        compared = {"estimated": one.estimated(first), "measured": one.measured(first)}
        return dataclasses.asdict(one) | {"share": one.share} | compared

    @staticmethod
    def _row_json(row: Row) -> dict[str, Any]:
        values = {item.name: getattr(row, item.name) for item in dataclasses.fields(row)}
        return values | {"measurement": row.measurement.label}
