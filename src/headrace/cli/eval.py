# SPDX-License-Identifier: Apache-2.0
"""`headrace eval`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional, arg


@dataclass(frozen=True)
class Eval:
    """Play episodes with the best policy of a run, and say what it scores."""

    run_folder: Annotated[Positional[Path], arg(metavar="RUN")]
    """Folder of the run."""
    episodes: Annotated[int, arg(metavar="N")] = 100
    """How many."""
    explore: FlagCreatePairsOff[bool] = False
    """Act as in training, by chance; otherwise always by what it holds best."""
    definition: Literal["auto", "native", "array", "gym"] = "auto"
    """Which definition of the environment; gym: Gymnasium's own class."""
    opponent: Annotated[
        str | None, arg(metavar="random|greedy", help_behavior_hint="(default: the environment's)")
    ] = None
    """Of a run that learnt chess: who it plays against, on python-chess; its score is told."""
    checkpoint: Annotated[
        str | None, arg(metavar="FILE|newest", help_behavior_hint="(default: the best policy)")
    ] = None
    """The policy of that moment instead."""
    seed: Annotated[int, arg(metavar="N")] = 1_000_000
    """Of the episodes."""
    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the scores, and every episode's, to this file."""
    video: Annotated[Path | None, arg(metavar="FILE.gif", help_behavior_hint="")] = None
    """Film an episode, where Gymnasium draws the environment."""

    def run(self) -> int:
        """Play."""
        from headrace.report.evaluation import run_eval

        return run_eval(
            self.run_folder,
            episodes=self.episodes,
            deterministic=not self.explore,
            definition=None if self.definition == "auto" else self.definition,
            opponent=self.opponent,
            checkpoint=self.checkpoint,
            seed=self.seed,
            json_file=self.json,
            video_file=self.video,
        )
