# SPDX-License-Identifier: Apache-2.0
"""Curves that stay small however long a run is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

Point = tuple[float, float, float]
"""Environment steps, seconds, value."""
LIMIT = 1500


@dataclass
class Series:
    """Points of one curve, fewer than `limit`: at so many, every second one is dropped.

    From then on, only every second new one is kept, and so on. Whoever has read some of it compares
    `edition`: when that is another, all points are new.
    """

    limit: int = LIMIT
    points: list[Point] = field(default_factory=list)
    edition: int = 0
    _stride: int = 1
    _passed_over: int = 0

    def add(self, env_steps: float, seconds: float, value: float | None) -> None:
        """One more point; None and what is no number are left out."""
        if value is None or not math.isfinite(value):
            return
        self._passed_over += 1
        if self._passed_over < self._stride:
            return
        self._passed_over = 0
        self.points.append((env_steps, round(seconds, 2), float(f"{value:.6g}")))
        if len(self.points) >= self.limit:
            del self.points[::2]  # the newest stays
            self._stride *= 2
            self.edition += 1


@dataclass
class Reader:
    """What one reader of several curves has got already."""

    _got: dict[str, tuple[int, int]] = field(default_factory=dict)

    def news(self, curves: dict[str, Series]) -> dict[str, dict[str, object]]:
        """By name: the edition, and the points that are new to the reader."""
        out = {}
        for name, series in curves.items():
            edition, count = self._got.get(name, (series.edition, 0))
            new = series.points[count if edition == series.edition else 0 :]
            self._got[name] = series.edition, len(series.points)
            if new or edition != series.edition:
                out[name] = {"edition": series.edition, "points": new}
        return out
