# SPDX-License-Identifier: Apache-2.0
"""The ladder as a figure: PNG or SVG, by the file's name."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from headrace.report import sweeps
from headrace.report.format import percent, quantity, ratio, size_in_bytes
from headrace.report.result import LadderResult, Row

SUFFIXES = (".png", ".svg")
INK, FAINT, LIMIT = "#222222", "#8a8f98", "#b3261e"
COLOURS = {
    "python": "#9aa0a6",
    "processes": "#6b7178",
    "numpy": "#8ab6e8",
    "torch": "#f0a35e",
    "torch-compile": "#d9731a",
    "xla": "#5b8def",
    "xla-fused": "#1f4fbf",
    "native": "#86c98f",
    "openmp": "#3fa34d",
    "mpi": "#8e63ce",
    "native-fused": "#17702a",
    "native-xla": "#0f9d8a",
}
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
LEGEND = {"loc": "outside lower center", "ncols": 6, "fontsize": 9, "frameon": False}
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
}


def plot(result: LadderResult, path: Path) -> None:
    """Draw it into this file."""
    draw = {
        "ladder": _draw_ladder,
        "num_envs": _draw_curves,
        "state_bytes": _draw_curves,
        "fused_steps": _draw_fused,
        "two_way": _draw_two_way,
    }[result.kind]
    with matplotlib.rc_context(STYLE):
        figure = draw(result)
        figure.savefig(path, format=path.suffix.lower().lstrip("."), dpi=150)


def _figure(result: LadderResult, width: float, height: float, panels: int, **grid: Any) -> Any:
    """A figure with a heading and `panels` axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False, **grid)[0]
    plan = result.plan
    batch = f"{plan.steps} steps a batch, random policy"
    if len(plan.num_envs) == 1:
        batch = f"{plan.num_envs[0]:,} environments × {batch}"
    figure.suptitle(
        f"{plan.spec.id}: {batch}\n{result.machine}, {result.date[:10]}", fontsize=10, color=INK
    )
    return figure, list(axes)


def _draw_ladder(result: LadderResult) -> Figure:
    rows = result.rows()
    panels = 2 if result.update else 1
    figure, axes = _figure(
        result,
        11 if panels == 2 else 8,
        1.6 + 0.42 * max(len(rows), 3),
        panels,
        sharey=True,
        width_ratios=[3, 2][:panels],
    )
    _draw_bars(axes[0], result, rows)
    if result.update:
        _draw_run(axes[1], result.update.seconds, rows)
    return figure


def _draw_bars(axes: Axes, result: LadderResult, rows: list[Row]) -> None:
    rates = [row.measurement.steps_per_second for row in rows]
    names = [row.measurement.label for row in rows]
    axes.barh(names, rates, color=[COLOURS.get(name, FAINT) for name in names], height=0.7)
    axes.set_xscale("log")
    for limit in result.limits:
        rate = limit.steps_per_second
        axes.axvline(rate, color=LIMIT, linestyle="--", linewidth=1.2)
        text = f"limit of this machine: {quantity(rate)} by {limit.binding} "
        axes.text(rate, -0.6, text, color=LIMIT, fontsize=8, va="bottom", ha="right")
    for position, row in enumerate(rows):
        label = f"{quantity(rates[position])}  {ratio(row.speedup)}"
        if row.of_limit is not None:
            label += f"  {percent(row.of_limit)}"
        _bar_label(axes, rates[position], position, label)
    ends = [*rates, *(limit.steps_per_second for limit in result.limits)]
    low, high = min(ends, default=1), max(ends, default=1)
    room = 0.25 * math.log10(high / low) + 0.5  # for the labels, in decades
    axes.set_xlim(low / 3, high * 10**room)
    axes.set_ylim(len(rows) - 0.4, -1.1)
    _steps_axis(axes.xaxis)
    axes.set_xlabel("environment steps per second (log scale)")
    axes.set_title(f"Steps/s, speed-up over {result.baseline}, part of the limit")


def _bar_label(axes: Axes, at: float, position: int, label: str) -> None:
    axes.annotate(
        label,
        (at, position),
        textcoords="offset points",
        xytext=(5, 0),
        va="center",
        fontsize=9,
        color=INK,
        bbox=BEHIND,
    )


def _draw_run(axes: Axes, update: float, rows: list[Row]) -> None:
    names = [row.measurement.label for row in rows]
    generation = [row.measurement.best_seconds for row in rows]
    axes.barh(names, generation, color=[COLOURS.get(name, FAINT) for name in names], height=0.7)
    axes.barh(names, update, left=generation, color="#e3e5e8", height=0.7)
    for position, row in enumerate(rows):
        assert row.run_speedup is not None
        assert row.share is not None
        label = f"{ratio(row.run_speedup)}  ({percent(row.share)} generation)"
        _bar_label(axes, generation[position] + update, position, label)
    axes.set_xlim(0, (max(generation, default=0) + update) * 1.75)
    axes.set_xlabel("seconds a batch: generation (coloured) + update (grey)")
    axes.set_title("A whole training run, estimated")


def _draw_curves(result: LadderResult) -> Figure:
    by_state = result.kind == "state_bytes"
    values = result.plan.state_bytes if by_state else result.plan.num_envs
    label = "bytes of state, read and written by each step" if by_state else "environments"
    compared = sweeps.comparisons(result)
    figure, axes = _figure(result, 12 if compared else 8, 5.5, 2 if compared else 1)
    every = axes[0]
    unfused = [f", {count} a call" for count in result.plan.fused_steps[:1]]
    for curve in sweeps.curves(result):
        colour = COLOURS.get(curve.name.partition(",")[0], FAINT)
        style = ":" if curve.name.endswith(tuple(unfused)) else "-"
        _line(every, values, curve.rates(), curve.name, color=colour, linestyle=style)
    limits = sweeps.limits_along(result)
    _line(every, values, limits, "limit of this machine", color=LIMIT, linestyle="--", marker="")
    _steps_axis(every.yaxis, every.set_yscale)
    every.set_ylabel("environment steps per second")
    every.set_title("Every rung")
    figure.legend(*every.get_legend_handles_labels(), **LEGEND)
    if compared:
        _draw_ratios(axes[1], values, compared)
        axes[1].set_title("Fused against unfused" if by_state else "The same rules, in fewer calls")
    for panel in axes:
        _value_axis(panel, values, label, size_in_bytes if by_state else None)
    return figure


def _draw_ratios(axes: Axes, values: Any, compared: dict[str, list[float | None]]) -> None:
    known = [value for series in compared.values() for value in series if value is not None]
    for name, series in compared.items():
        _line(axes, values, series, name, label_points=ratio)
    axes.axhline(1, color=FAINT, linewidth=1)
    if known and max(known) > 10 * min(known):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.2 * max(known, default=1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.margins(y=0.15)
    axes.set_ylabel("times as fast")
    axes.legend(fontsize=9, frameon=False)


def _draw_fused(result: LadderResult) -> Figure:
    values = result.plan.fused_steps
    figure, axes = _figure(result, 8, 5, 1)
    panel = axes[0]
    for rung in sweeps.rungs(result):
        found = sweeps.grid(result, rung)
        points = [found.get((result.plan.num_envs[0], value)) for value in values]
        rates = [point and point.steps_per_second for point in points]
        base = next(iter(found.values())).steps_per_second
        labels = partial(_rate_and_gain, base=base)
        _line(panel, values, rates, rung, label_points=labels, color=COLOURS.get(rung, FAINT))
    for limit in result.limits:
        panel.axhline(limit.steps_per_second, color=LIMIT, linestyle="--", linewidth=1.2)
        text = f"limit of this machine, {quantity(limit.steps_per_second)} by {limit.binding}"
        panel.text(values[0], limit.steps_per_second, text, color=LIMIT, fontsize=8, va="bottom")
    _steps_axis(panel.yaxis, panel.set_yscale)
    panel.margins(y=0.2)
    panel.set_ylabel("environment steps per second")
    panel.set_title("What several steps in one call bring")
    panel.legend(fontsize=9, frameon=False, loc="lower right")
    _value_axis(panel, values, "steps a call", None)
    return figure


def _rate_and_gain(rate: float, base: float) -> str:
    return f"{quantity(rate)}\n{ratio(rate / base)}"


def _draw_two_way(result: LadderResult) -> Figure:
    plan, rungs = result.plan, sweeps.rungs(result)
    width = max(2.5 + 1.25 * len(plan.fused_steps), 6.5) * len(rungs)
    figure, axes = _figure(result, width, max(2.0 + 0.6 * len(plan.num_envs), 3.5), len(rungs))
    for panel, rung in zip(axes, rungs, strict=True):
        _draw_grid(panel, result, rung)
    return figure


def _draw_grid(panel: Axes, result: LadderResult, rung: str) -> None:
    plan, found = result.plan, sweeps.grid(result, rung)
    rates = {at: one.steps_per_second for at, one in found.items()}
    base, middle = next(iter(rates.values())), (max(rates.values()) * min(rates.values())) ** 0.5
    logs = [
        [math.log10(rates.get((num_envs, fused), math.nan)) for fused in plan.fused_steps]
        for num_envs in plan.num_envs
    ]
    panel.imshow(logs, cmap="YlGn", aspect="auto")
    for y, num_envs in enumerate(plan.num_envs):
        for x, fused in enumerate(plan.fused_steps):
            rate = rates.get((num_envs, fused))
            if rate is not None:
                colour = "white" if rate > 1.5 * middle else INK
                text = _rate_and_gain(rate, base)
                panel.text(x, y, text, ha="center", va="center", fontsize=9, color=colour)
    panel.set_xticks(range(len(plan.fused_steps)), [f"{value}" for value in plan.fused_steps])
    panel.set_yticks(range(len(plan.num_envs)), [f"{value:,}" for value in plan.num_envs])
    panel.set_xlabel("steps a call")
    panel.set_ylabel("environments")
    panel.set_title(f"{rung}: steps/s, and gain over the first")


def _line(
    axes: Axes, values: Any, series: Any, name: str, label_points: Any = None, **style: Any
) -> None:
    known = [(at, value) for at, value in zip(values, series, strict=True) if value is not None]
    if not known:
        return
    style = {"marker": "o", "markersize": 4, "linewidth": 1.8} | style
    axes.plot(*zip(*known, strict=True), label=name, **style)
    for at, value in known if label_points else ():
        axes.annotate(
            label_points(value),
            (at, value),
            textcoords="offset points",
            xytext=(0, 6),
            ha="center",
            fontsize=8,
            bbox=BEHIND,
        )


def _steps_axis(axis: Any, set_scale: Any = None) -> None:
    if set_scale is not None:
        set_scale("log")
    axis.set_major_locator(LogLocator(numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axis.set_minor_locator(NullLocator())


def _short(value: float) -> str:
    return quantity(value).replace(".00", "").replace(".0", "")


def _value_axis(axes: Axes, values: Any, label: str, form: Any) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(values), [form(value) if form else f"{value:,}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)
    axes.grid(axis="y", color="#e8eaed", linewidth=0.8)
    axes.set_axisbelow(True)
