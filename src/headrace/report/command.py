# SPDX-License-Identifier: Apache-2.0
"""What `headrace ladder` does around the measuring: progress, tables, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from headrace.errors import HeadraceError
from headrace.report.ladder import LadderInterrupted, ladder
from headrace.report.output import check_writable, write_whole
from headrace.report.progress import progress_on
from headrace.report.result import LadderResult
from headrace.report.table import render

INTERRUPTED = 130


def run_ladder(
    env: str,
    *,
    json_file: Path | None,
    plot_file: Path | None,
    options: dict[str, Any],
    **settings: Any,
) -> int:
    """Measure, print and write; returns the exit code. `settings` are those of `ladder`."""
    if json_file is not None:
        check_writable(json_file, "--json")
    if plot_file is not None:
        check_writable(plot_file, "--plot", (".png", ".svg"))
    clash = sorted(set(options) & set(settings))
    if clash:
        raise HeadraceError(f"--set {clash[0]}: that is --{clash[0].replace('_', '-')}")
    progress = progress_on(Console(stderr=True))
    try:
        result = ladder(env, progress=progress, **settings, **options)
    except LadderInterrupted as stop:
        result = stop.result
    console = Console()
    console.print(render(result, console.width), highlight=False)
    _write(result, json_file, plot_file)
    if result.interrupted:
        return INTERRUPTED
    if not result.measurements:
        raise HeadraceError(f"no rung of {result.plan.spec.id} could be measured")
    return 0


def _write(result: LadderResult, json_file: Path | None, plot_file: Path | None) -> None:
    if json_file is not None:
        text = json.dumps(result.to_json(), indent=2, allow_nan=False) + "\n"
        write_whole(json_file, lambda draft: draft.write_text(text, "utf-8"))
    if plot_file is not None and result.measurements:
        from headrace.report.plots import plot

        write_whole(plot_file, lambda draft: plot(result, draft))
