# SPDX-License-Identifier: Apache-2.0
"""The ladder on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headrace.report import sweeps
from headrace.report.format import count, duration, figures, percent, quantity, ratio
from headrace.report.impact import DECK_UPDATE_SECONDS
from headrace.report.limits import Limit
from headrace.report.result import LadderResult, Row

if TYPE_CHECKING:  # it brings JAX
    from headrace.report.trained import TrainedRung

NARROW = 92
"""Below this many columns, tables have one space between columns instead of two."""
BAR_WIDTH = 20


def as_text(result: LadderResult, width: int) -> str:
    """Without colours."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(result, width))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def render(result: LadderResult, width: int) -> RenderableType:
    """Everything that is printed: tables, the limit, and what was left out."""
    parts: list[RenderableType] = ["", _title(result), Text(_conditions(result), "dim"), ""]
    if not result.measurements:
        parts.append("nothing was measured")
    elif result.kind == "ladder":
        rows = result.rows()
        parts.append(_ladder_table(result, rows, width))
        parts += [Text(line, "dim") for line in _limit_lines(result.limits)]
        if result.update:
            parts += ["", _run_title(result), _run_table(rows, width)]
        if result.trained:
            parts += [_trained_title(), _trained_table(result.trained, width)]
    else:
        for table in sweeps.tables(result):
            parts += [_sweep_table(table, part, width) for part in table.parts(width)]
        if result.kind == "fused_steps":
            parts += [Text(line, "dim") for line in _limit_lines(result.limits)]
    parts += [Text(line, "yellow") for line in _left_out_lines(result)]
    if result.interrupted:
        parts.append(Text("interrupted: this is what was measured until then", "yellow"))
    return Group(*parts)


def _title(result: LadderResult) -> Text:
    plan = result.plan
    text = Text()
    text.append(plan.spec.id, "bold")
    for name, value in plan.options.items():
        if name != "state_bytes" or result.kind != "state_bytes":
            text.append(f", {name} {value}")
    if len(plan.num_envs) > 1:
        text.append(f": batches of {plan.steps} steps")
    for num_envs in plan.num_envs if len(plan.num_envs) == 1 else ():
        text.append(f": {num_envs:,} environments × {plan.steps} steps")
        text.append(f" = {num_envs * plan.steps:,} transitions a batch")
    if len(plan.fused_steps) == 1:
        text.append(f", {plan.fused_steps[0]} a call where fused")
    return text


def _conditions(result: LadderResult) -> str:
    plan = result.plan
    how = (
        f"random policy; best of {plan.repeats} repeats of {duration(plan.seconds / plan.repeats)}"
    )
    return f"{result.machine}; {how}"


def _table(width: int, headers: Iterable[str]) -> Table:
    gap = 2 if width >= NARROW else 1
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for position, header in enumerate(headers):
        table.add_column(
            header, justify="right" if position else "left", no_wrap=True, vertical="bottom"
        )
    return table


def _ladder_table(result: LadderResult, rows: list[Row], width: int) -> RenderableType:
    headers = (
        "rung", "steps/s", "", f"vs\n{result.baseline}", "vs\nabove", "calls\na step",
        "bytes\na step", "time\na batch", "of\nlimit", "start-\nup",
    )  # fmt: skip
    table = _table(width, headers)
    best = max(rows, key=lambda row: row.speedup)
    for row in rows:
        one = row.measurement
        table.add_row(
            Text(one.label, "bold" if row is best else ""),
            Text(quantity(one.steps_per_second), "bold"),
            Text(f"±{100 * one.spread:.0f} %", "dim"),
            ratio(row.speedup),
            "–" if row.above is None else ratio(row.above),
            "–" if one.calls_per_step is None else count(one.calls_per_step),
            figures(one.transition_bytes),
            duration(one.best_seconds),
            "–" if row.of_limit is None else percent(row.of_limit),
            "<1 ms" if one.startup_seconds < 1e-3 else duration(one.startup_seconds, 2),
        )
    return Padding(table, (0, 0, 1, 0))


def _limit_lines(limits: list[Limit]) -> list[str]:
    lines = []
    for limit in limits:
        binding = limit.binding
        store = f"{figures(limit.store_bandwidth / 1e9)} GB/s ÷ {figures(limit.transition_bytes)} B"
        by_store = f"{quantity(limit.by_store)} by store bandwidth ({store} a step)"
        lines.append(
            f"limit of this machine: {quantity(limit.steps_per_second)} steps/s, by {binding}"
        )
        if limit.by_arithmetic is None or limit.step_operations is None:
            lines += [f"  {by_store}", "  arithmetic is not counted: no array definition"]
            continue
        peak = f"{figures(limit.arithmetic_peak / 1e9)} Gop/s ÷ {figures(limit.step_operations)}"
        lines.append(f"  {by_store}")
        lines.append(f"  {quantity(limit.by_arithmetic)} by arithmetic ({peak} operations a step)")
    return lines


def _run_title(result: LadderResult) -> Text:
    assert result.update is not None
    measured = "measured: PPO, 64 × 64 network, 4 epochs"
    how = "given" if result.update.source == "given" else measured
    text = Text("A whole training run = batches × (generation + update)", "bold")
    text.append(f"\nupdate: {duration(result.update.seconds)} a batch, {how}", "dim not bold")
    return text


def _run_table(rows: list[Row], width: int) -> RenderableType:
    deck = duration(DECK_UPDATE_SECONDS)
    headers = (
        "rung", "generation", "spent in generation", "", "whole\nrun",
        f"deck's {deck}:\ngeneration", "whole\nrun",
    )  # fmt: skip
    table = _table(width, headers)
    for row in rows:
        assert row.share is not None
        assert row.run_speedup is not None
        filled = round(row.share * BAR_WIDTH)
        table.add_row(
            row.measurement.label,
            duration(row.measurement.best_seconds),
            Text("█" * filled, "cyan") + Text("░" * (BAR_WIDTH - filled), "dim"),
            percent(row.share),
            Text(ratio(row.run_speedup), "bold"),
            percent(row.deck_share),
            ratio(row.deck_run_speedup),
        )
    return Padding(table, (1, 0, 1, 0))


def _trained_title() -> Text:
    text = Text("The same, measured: short training with generation from each rung", "bold")
    how = "generation by the policy that learns, update and iteration each timed by themselves"
    text.append(f"\n{how}", "dim not bold")
    return text


def _trained_table(trained: list[TrainedRung], width: int) -> RenderableType:
    headers = (
        "rung", "generation", "of the\nrun", "iteration,\nestimated", "\nmeasured",
        "whole run,\nestimated", "\nmeasured", "differ\nby",
    )  # fmt: skip
    table = _table(width, headers)
    first = trained[0]
    for one in trained:
        estimated, measured = one.estimated(first), one.measured(first)
        off = estimated / measured - 1
        table.add_row(
            one.rung,
            duration(one.generation),
            percent(one.share),
            duration(one.generation + one.update),
            duration(one.iteration),
            ratio(estimated),
            Text(ratio(measured), "bold"),
            f"{100 * off:+.0f} %",
        )
    return Padding(table, (1, 0, 1, 0))


def _sweep_table(table: sweeps.SweepTable, columns: range, width: int) -> RenderableType:
    grid = _table(width, [table.corner, *(table.headers[column] for column in columns)])
    for line in table.lines:
        cells = [Text(line.cells[column], "bold" if line.strong else "") for column in columns]
        grid.add_row(line.label, *cells)
    return Group(Text(table.title, "bold"), Padding(grid, (0, 0, 1, 0)))


def _left_out_lines(result: LadderResult) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for one in result.left_out:
        rungs = by_reason.setdefault(one.reason, [])
        if one.rung not in rungs:
            rungs.append(one.rung)
    lines = [f"left out: {', '.join(rungs)}: {reason}" for reason, rungs in by_reason.items()]
    return lines + [f"not trained with: {one.rung}: {one.reason}" for one in result.not_trained]
