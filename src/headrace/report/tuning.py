# SPDX-License-Identifier: Apache-2.0
"""What `headrace tune` does around the measuring: a table of what was tried."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace.report.output import check_writable, write_whole
from headrace.runtime.run import make_plan
from headrace.runtime.tuner import Choice, Trial, tune
from headrace.train.config import environment
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of


def run_tune(
    env: str,
    *,
    algo: str | None,
    options: dict[str, Any],
    given: dict[str, Any],
    json_file: Path | None,
) -> int:
    """Measure anew, print, and keep the choice for runs to come; returns the exit code."""
    if json_file is not None:
        check_writable(json_file, "--json")
    config = resolve(env, algo=algo, mode="async", options=options, given=given)
    algorithm = make_algorithm_of(config, environment(config))
    acting = algorithm.acting(algorithm.init(config.settings.seed))
    console = Console()
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="headrace-tune-") as folder:
        plan = make_plan(config, Path(folder), algorithm, acting)
        choice = tune(plan, lambda text: progress.print(text, highlight=False), use_cache=False)
    console.print(table(choice), highlight=False)
    if json_file is not None:
        text = json.dumps(choice.to_json(), indent=2) + "\n"
        write_whole(json_file, lambda draft: draft.write_text(text, "utf-8"))
    return 0


def table(choice: Choice) -> Table:
    """All that was tried; what was chosen stands out."""
    out = Table("samplers", "environments each", "batch", "updates", "steps/s", "frames/s")
    for trial in choice.trials:
        chosen = trial.frames is not None and _is(choice, trial)
        out.add_row(
            str(trial.samplers),
            str(trial.envs),
            "" if trial.frames is None else str(trial.batch_size),
            "" if trial.frames is None else str(trial.updates),
            "" if trial.sampling is None else f"{trial.sampling:,.0f}",
            "" if trial.frames is None else f"{trial.frames:,.0f}",
            style="bold" if chosen else "",
        )
    out.caption = f"{choice.seconds:.1f} s, and {choice.compiling:.1f} s of importing and compiling"
    return out


def _is(choice: Choice, trial: Trial) -> bool:
    ours = (choice.samplers, choice.envs, choice.batch_size, choice.updates)
    return ours == (trial.samplers, trial.envs, trial.batch_size, trial.updates)
