# SPDX-License-Identifier: Apache-2.0
"""The return curve of a run as a picture: by environment steps, and by time.

Written as SVG directly: to import what draws would take longer than some runs do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from headrace.train.files import write_whole
from headrace.train.metrics import LINES, read
from headrace.train.run_folder import CURVE, read_config

SERIES = (("train/return", "training", "#9db8c7"), ("evaluation/return", "evaluation", "#0b6e99"))
_WIDTH, _HEIGHT, _TOP, _BOTTOM, _LEFT, _GAP = 450, 260, 44, 40, 62, 40
"""Of a panel, its drawing area, and the room around it, in pixels."""
_STYLE = "text{font:12px sans-serif;fill:#333}path{fill:none;stroke-width:1.6}.grid{stroke:#e4e7ea}"


_PAPER = '<rect width="100%" height="100%" fill="white"/>'


class Scale(NamedTuple):
    """From values to pixels."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)


def draw_curve(folder: Path) -> Path | None:
    """Draw what the run's log says; None where there is nothing to draw yet."""
    rows = list(read(folder / LINES))
    values = [row[name] for row in rows for name, _, _ in SERIES if name in row]
    if not values:
        return None
    config = read_config(folder)
    until = config["until"]
    low, high = _range([*values, *([] if until is None else [until])])
    height = Scale(low, high, _TOP + _HEIGHT, _TOP)
    title = f"{config['env']} · {config['algo']} · seed {config['seed']}"
    parts = [f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>', *_legend()]
    measures = (("env_steps", "environment steps"), ("seconds", "seconds"))
    for number, (x, label) in enumerate(measures):
        begin = _LEFT + number * (_WIDTH + _GAP)
        across = Scale(0, _range([row[x] for row in rows])[1], begin, begin + _WIDTH)
        parts += _panel(rows, x, label, across, height, until, numbers=number == 0)
    size = f"{_LEFT + 2 * _WIDTH + _GAP + 20} {_TOP + _HEIGHT + _BOTTOM}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">'
    body = "\n".join([head, f"<style>{_STYLE}</style>", _PAPER, *parts, "</svg>\n"])
    path = folder / CURVE
    write_whole(path, lambda file: file.write(body.encode()))
    return path


def _panel(
    rows: Sequence[dict[str, Any]],
    x: str,
    label: str,
    across: Scale,
    height: Scale,
    until: float | None,
    *,
    numbers: bool,
) -> Iterable[str]:
    """Grid, target and curves over one measure of progress."""
    for value in _ticks(height.low, height.high):
        y = height.at(value)
        yield f'<path class="grid" d="M{across.first} {y}H{across.last}"/>'
        if numbers:
            yield f'<text x="{across.first - 8}" y="{y + 4}" text-anchor="end">{value:,g}</text>'
    for value in _ticks(across.low, across.high):
        middle = f'x="{across.at(value)}" y="{height.first + 18}" text-anchor="middle"'
        yield f"<text {middle}>{value:,g}</text>"
    middle = f'x="{(across.first + across.last) / 2}" y="{height.first + 36}" text-anchor="middle"'
    yield f"<text {middle}>{label}</text>"
    if until is not None:
        target = f"M{across.first} {height.at(until)}H{across.last}"
        yield f'<path d="{target}" stroke="#888" stroke-dasharray="3 4"/>'
    for name, _, colour in SERIES:
        points = [(across.at(row[x]), height.at(row[name])) for row in rows if name in row]
        if points:
            line = "L".join(f"{a} {b}" for a, b in points)
            yield f'<path d="M{line}" stroke="{colour}"/>'
        if name.startswith("evaluation"):
            yield from (f'<circle cx="{a}" cy="{b}" r="2.5" fill="{colour}"/>' for a, b in points)


def _legend() -> Iterable[str]:
    for number, (_, label, colour) in enumerate(SERIES):
        x = _LEFT + _WIDTH + _GAP + 100 * number
        yield f'<path d="M{x} 16h22" stroke="{colour}"/><text x="{x + 28}" y="20">{label}</text>'


def _range(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest; apart in any case."""
    found = list(values)
    low, high = min(found), max(found)
    return (low, high) if high > low else (low - 1, high + 1)


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
