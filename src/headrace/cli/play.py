# SPDX-License-Identifier: Apache-2.0
"""`headrace play`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from headrace.cli.arguments import Whole

Side = Annotated[str | None, arg(metavar="human|random|greedy|RUN", help_behavior_hint="")]


@dataclass(frozen=True)
class Play:
    """Play a game of chess in the terminal, or watch one.

    Moves are in SAN (Nf3, exd5, O-O, e8=Q) or UCI (g1f3, e8q); "help" lists what else can be said.
    """

    env: Annotated[Positional[str], arg(metavar="ENV")] = "Chess-v0"
    """Environment: Chess-v0."""
    white: Side = None
    """Who plays white: you, one who plays any move, one who takes what he can, or what a run (its
    folder) has learnt. (default: human; with --black human, random)"""
    black: Side = None
    """Who plays black. (default: random; with a machine for --white, human)"""
    fen: Annotated[str | None, arg(metavar="FEN", help_behavior_hint="")] = None
    """Position to begin from, instead of the usual one."""
    ascii: FlagCreatePairsOff[bool] = False
    """Letters for pieces, in a terminal that has no chessmen."""
    seed: Annotated[Whole, arg(help_behavior_hint="(default: another each time)")] = None
    """Of the players' choices."""

    def run(self) -> int:
        """Play."""
        from headrace.report.play import play

        return play(
            self.env,
            white=self.white,
            black=self.black,
            fen=self.fen,
            ascii_only=self.ascii,
            seed=self.seed,
        )
