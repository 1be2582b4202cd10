# SPDX-License-Identifier: Apache-2.0
"""Tables of what was measured for several values of something.

Three questions are kept apart: what fewer calls bring (XLA against torch, by environments), what
several steps in one call bring (by steps a call, and by the simulator's memory), and what both
bring together (environments x steps a call).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.report.format import count, percent, quantity, ratio, size_in_bytes
from headrace.report.measure import Measurement
from headrace.report.plan import FUSING
from headrace.report.result import LadderResult

NOT_MEASURED = "–"
CELL_WIDTH = 9
COMPARED = (("xla", "torch"), ("xla-fused", "torch"), ("xla-fused", "xla"))
"""Rungs whose ratios a sweep shows: the same text, by fewer calls."""


@dataclass(frozen=True)
class Line:
    """A label and its cells."""

    label: str
    cells: list[str]
    strong: bool = False


@dataclass(frozen=True)
class SweepTable:
    """A table to be printed; too wide a one in several parts."""

    title: str
    corner: str
    headers: list[str]
    lines: list[Line]

    def parts(self, width: int) -> Iterator[range]:
        """The columns that fit side by side."""
        labels = max(len(line.label) for line in self.lines) + 2
        room = max((width - labels) // CELL_WIDTH, 1)
        for first in range(0, len(self.headers), room):
            yield range(first, min(first + room, len(self.headers)))


@dataclass(frozen=True)
class Curve:
    """One rung over the swept values; None where it was not measured."""

    name: str
    points: list[Measurement | None]

    def rates(self) -> list[float | None]:
        """Steps/s."""
        return [point and point.steps_per_second for point in self.points]


def tables(result: LadderResult) -> list[SweepTable]:
    """The tables of this result's sweep."""
    make = {
        "num_envs": _by_num_envs,
        "fused_steps": _by_fused_steps,
        "two_way": _two_way,
        "state_bytes": _by_state_bytes,
    }[result.kind]
    return make(result)


def curves(result: LadderResult) -> list[Curve]:
    """Each rung (and each number of fused steps) over num_envs or state_bytes."""
    plan = result.plan
    by_state = result.kind == "state_bytes"
    found: dict[tuple[str, int | None], dict[int, Measurement]] = {}
    for one in result.measurements:
        at = one.options["state_bytes"] if by_state else one.num_envs
        found.setdefault((one.rung, one.fused_steps), {})[at] = one
    values = plan.state_bytes if by_state else plan.num_envs
    return [
        Curve(f"{rung}, {fused} a call" if fused else rung, [points.get(at) for at in values])
        for (rung, fused), points in found.items()
    ]


def ratios(curves: list[Curve], over: str, under: str) -> list[float | None] | None:
    """One curve's rates over another's; None unless both are there."""
    named = {curve.name: curve for curve in curves}
    if over not in named or under not in named:
        return None
    pairs = zip(named[over].rates(), named[under].rates(), strict=True)
    return [a / b if a and b else None for a, b in pairs]


def comparisons(result: LadderResult) -> dict[str, list[float | None]]:
    """The ratios that this sweep is about, by what they compare."""
    every = curves(result)
    pairs = {f"{over} ÷ {under}": (over, under) for over, under in COMPARED}
    fused = result.plan.fused_steps
    for rung in FUSING if len(fused) > 1 else ():
        most, least = max(fused), min(fused)
        pairs[f"{rung}, {most} ÷ {least} a call"] = (
            f"{rung}, {most} a call",
            f"{rung}, {least} a call",
        )
    found = {name: ratios(every, over, under) for name, (over, under) in pairs.items()}
    return {name: values for name, values in found.items() if values is not None}


def limits_along(result: LadderResult) -> list[float | None]:
    """The machine's limit at each swept value."""
    by_state = result.kind == "state_bytes"
    found = {
        limit.options["state_bytes"] if by_state else limit.num_envs: limit.steps_per_second
        for limit in result.limits
    }
    values = result.plan.state_bytes if by_state else result.plan.num_envs
    return [found.get(value) for value in values]


def rungs(result: LadderResult) -> list[str]:
    """Those measured, in order."""
    return list(dict.fromkeys(one.rung for one in result.measurements))


def grid(result: LadderResult, rung: str) -> dict[tuple[int, int], Measurement]:
    """A rung's measurements by (environments, steps a call)."""
    return {
        (one.num_envs, one.fused_steps): one
        for one in result.measurements
        if one.rung == rung and one.fused_steps is not None
    }


def _cells(values: list[float | None], form: Callable[[float], str] = quantity) -> list[str]:
    return [NOT_MEASURED if value is None else form(value) for value in values]


def _by_num_envs(result: LadderResult) -> list[SweepTable]:
    headers = [f"N={value:,}" for value in result.plan.num_envs]
    lines = _curve_lines(result)
    return [SweepTable("steps/s by number of environments", "rung", headers, lines)]


def _curve_lines(result: LadderResult) -> list[Line]:
    every = curves(result)
    lines = [Line(curve.name, _cells(curve.rates())) for curve in every]
    lines.append(Line("limit of this machine", _cells(limits_along(result))))
    lines += [
        Line(name, _cells(values, ratio), strong=True)
        for name, values in comparisons(result).items()
    ]
    return lines


def _by_fused_steps(result: LadderResult) -> list[SweepTable]:
    return [_fusion_table(result, rung) for rung in rungs(result)]


def _fusion_table(result: LadderResult, rung: str) -> SweepTable:
    headers = ["steps/s", "", "gain", "calls a step", "of limit"]
    measured = list(grid(result, rung).values())
    lines = []
    for one in measured:
        limit = result.of_limit(one)
        calls = one.calls_per_step
        cells = [
            quantity(one.steps_per_second),
            f"±{100 * one.spread:.0f} %",
            ratio(one.steps_per_second / measured[0].steps_per_second),
            NOT_MEASURED if calls is None else count(calls),
            NOT_MEASURED if limit is None else percent(limit),
        ]
        lines.append(Line(f"{one.fused_steps}", cells))
    return SweepTable(f"{rung}: what several steps in one call bring", "a call", headers, lines)


def _by_state_bytes(result: LadderResult) -> list[SweepTable]:
    headers = [size_in_bytes(value) for value in result.plan.state_bytes]
    lines = _curve_lines(result)
    title = "steps/s by the bytes of state that each step reads and writes"
    return [SweepTable(title, "rung", headers, lines)]


def _two_way(result: LadderResult) -> list[SweepTable]:
    return [table for rung in rungs(result) for table in _two_way_tables(result, rung)]


def _two_way_tables(result: LadderResult, rung: str) -> list[SweepTable]:
    plan, found = result.plan, grid(result, rung)
    base = next(iter(found.values())).steps_per_second
    rates, gains = [], []
    for num_envs in plan.num_envs:
        row = [found.get((num_envs, fused)) for fused in plan.fused_steps]
        values = [one and one.steps_per_second for one in row]
        rates.append(Line(f"{num_envs:,}", _cells(values)))
        over = [value and value / base for value in values]
        gains.append(Line(f"{num_envs:,}", _cells(over, ratio)))
    headers = [f"K={fused}" for fused in plan.fused_steps]
    title, first = f"{rung}: steps/s, environments × steps a call", next(iter(found))
    gain_title = f"{rung}: gain over {first[0]} × {first[1]}, vectorisation × fusion"
    return [
        SweepTable(title, "environments", headers, rates),
        SweepTable(gain_title, "environments", headers, gains),
    ]
