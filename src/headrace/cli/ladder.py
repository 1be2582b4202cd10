# SPDX-License-Identifier: Apache-2.0
"""`headrace ladder`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg

from headrace.cli.arguments import Numbers, Whole, numbers, option, parts


@dataclass(frozen=True)
class Ladder:
    """Measure every way of making experience, side by side on identical work.

    How fast each rung is, of this machine's limit, and what it would do for a whole training run.
    """

    env: Annotated[Positional[str], arg(metavar="ENV")]
    """Environment: one of `headrace envs`, or any id of Gymnasium's."""
    num_envs: Annotated[
        Numbers, arg(help_behavior_hint="(default: 131,072 transitions a batch)")
    ] = None
    """Environments in a batch. Several make a sweep: every rung by number of environments."""
    steps: Annotated[
        Whole, arg(help_behavior_hint="(default: 32, more where a sweep needs it)")
    ] = None
    """Steps of every environment in a batch."""
    fused_steps: Annotated[Numbers, arg(help_behavior_hint="(default: all of --steps)")] = None
    """Steps in one call of the fused rungs. Several make a sweep: what fusing steps brings; with
    several --num-envs a two-way table, vectorisation times fusion."""
    state_bytes: Annotated[Numbers, arg(help_behavior_hint="(default: the environment's)")] = None
    """State of an environment, where that is an option (Memory-v0). Several make a sweep: what
    fusing steps brings as a simulator's memory grows."""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE")] = ()
    """An option of the environment, or max_episode_steps; give it again for another."""
    rungs: Annotated[
        str | None,
        arg(metavar="NAME[,NAME...]", help_behavior_hint="(default: all that there are)"),
    ] = None
    """Rungs to measure."""
    seconds: Annotated[float, arg(metavar="SECONDS")] = 1.0
    """Time given to each rung; a slow one takes what two batches take."""
    repeats: Annotated[int, arg(metavar="N")] = 5
    """Parts of that time; the best one counts, and their spread is shown."""
    threads: Annotated[Whole, arg(help_behavior_hint="(default: all processors)")] = None
    """Threads of the rungs that have them."""
    workers: Annotated[Whole, arg(help_behavior_hint="(default: one for each processor)")] = None
    """Processes of the rungs that have them."""
    ranks: Annotated[Whole, arg(help_behavior_hint="(default: one for each processor)")] = None
    """Processes of the mpi rung."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of environments and policy."""
    update_seconds: Annotated[
        float | None, arg(metavar="SECONDS", help_behavior_hint="(default: a PPO update is timed)")
    ] = None
    """What your learner takes for a batch; for the estimate of a whole training run."""
    train: FlagCreatePairsOff[bool] = False
    """Test that estimate: train shortly with each rung that takes a policy."""
    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything measured to this file."""
    plot: Annotated[Path | None, arg(metavar="FILE.png|.svg", help_behavior_hint="")] = None
    """Draw it into this file."""

    def run(self) -> int:
        """Measure, print, write."""
        from headrace.report.command import run_ladder

        return run_ladder(
            self.env,
            rungs=None if self.rungs is None else parts(self.rungs),
            num_envs=numbers("--num-envs", self.num_envs),
            steps=self.steps,
            fused_steps=numbers("--fused-steps", self.fused_steps),
            state_bytes=numbers("--state-bytes", self.state_bytes),
            seconds=self.seconds,
            repeats=self.repeats,
            threads=self.threads,
            workers=self.workers,
            ranks=self.ranks,
            seed=self.seed,
            update_seconds=self.update_seconds,
            train=self.train,
            json_file=self.json,
            plot_file=self.plot,
            options=dict(option(text) for text in self.set),
        )
