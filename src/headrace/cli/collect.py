# SPDX-License-Identifier: Apache-2.0
"""`headrace collect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg

from headrace.cli.arguments import Whole, option


@dataclass(frozen=True)
class Collect:
    """Write experience to disk: a folder of batches that NumPy reads, and headrace.load.

    Ctrl-C stops after a batch; --resume continues, also after a kill. On several hosts:
    mpiexec -n RANKS -hosts A,B headrace collect ... gives the same files as one rank.
    """

    env: Annotated[Positional[str], arg(metavar="ENV")]
    """Environment: one of `headrace envs`, or any id of Gymnasium's."""
    out: Annotated[Path, arg(metavar="DIR")]
    """Folder for the experience: a new or an empty one, or with --resume one that has some."""
    batches: Annotated[int, arg(metavar="B")]
    """Batches in all."""
    num_envs: Annotated[int, arg(metavar="N")] = 64
    """Environments in a batch."""
    steps: Annotated[int, arg(metavar="T")] = 128
    """Steps of every environment in a batch."""
    policy: Annotated[str, arg(metavar="random|RUN")] = "random"
    """Who acts: uniform random legal actions, or the folder of a trained run."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of environments and policy."""
    rung: Annotated[str, arg(metavar="NAME")] = "auto"
    """How it is made; auto: the fastest there is for this environment and policy."""
    ranks: Annotated[Whole, arg(help_behavior_hint="(default: one process)")] = None
    """Processes of the mpi rung, on this host."""
    threads: Annotated[Whole, arg(help_behavior_hint="(default: all processors)")] = None
    """Threads of the rungs that have them."""
    workers: Annotated[Whole, arg(help_behavior_hint="(default: one for each processor)")] = None
    """Processes of the processes rung."""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE")] = ()
    """An option of the environment, or max_episode_steps; give it again for another."""
    resume: FlagCreatePairsOff[bool] = False
    """Continue what the folder holds; all that the experience depends on must be the same."""

    def run(self) -> int:
        """Collect."""
        from headrace.report.record import run_collect

        return run_collect(
            self.env,
            out=self.out,
            batches=self.batches,
            policy=self.policy,
            rung=self.rung,
            resume=self.resume,
            options=dict(option(text) for text in self.set),
            num_envs=self.num_envs,
            steps=self.steps,
            seed=self.seed,
            ranks=self.ranks,
            threads=self.threads,
            workers=self.workers,
        )
