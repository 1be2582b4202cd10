# SPDX-License-Identifier: Apache-2.0
"""`headrace resume`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from headrace.cli.arguments import Whole

Number = Annotated[float | None, arg(help_behavior_hint="(default: as before)")]


@dataclass(frozen=True)
class Resume:
    """Continue a run that was stopped or killed, from its newest checkpoint.

    Compiled runs continue as if they had never stopped. A run that reached its end goes on if it is
    given a new one.
    """

    run_folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """Folder of the run."""
    total_steps: Annotated[Whole, arg(help_behavior_hint="(default: as before)")] = None
    """Stop after so many environment steps, those before included."""
    until: Number = None
    """Stop when the mean return of an evaluation reaches this."""
    time_limit: Number = None
    """Stop after so many seconds, those before included."""
    quiet: FlagCreatePairsOff[bool] = False
    """Say nothing but errors."""
    no_plot: FlagCreatePairsOff[bool] = False
    """Do not draw the curve at the end."""

    def run(self) -> int:
        """Continue."""
        from headrace.report.training import run_resume

        changed = {"total_steps": self.total_steps, "until": self.until}
        changed |= {"time_limit": self.time_limit}
        return run_resume(
            self.run_folder,
            {name: value for name, value in changed.items() if value is not None},
            quiet=self.quiet,
            plot=not self.no_plot,
        )
