# SPDX-License-Identifier: Apache-2.0
"""The command line: `headrace ladder`, `headrace envs`.

Imports are made where they are used, so that `--help` costs next to nothing.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg

from headrace import __version__
from headrace.errors import HeadraceError

Numbers = Annotated[str | None, arg(metavar="N[,N...]")]
Whole = Annotated[int | None, arg(metavar="N")]
INTERRUPTED = 130

DESCRIPTION = """Reinforcement-learning experience at the hardware's limit.

headrace COMMAND --help explains a command; headrace --version prints the version."""


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
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of environments and policy."""
    update_seconds: Annotated[
        float | None, arg(metavar="SECONDS", help_behavior_hint="(default: a PPO update is timed)")
    ] = None
    """What your learner takes for a batch; for the estimate of a whole training run."""
    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything measured to this file."""
    plot: Annotated[Path | None, arg(metavar="FILE.png|.svg", help_behavior_hint="")] = None
    """Draw it into this file."""

    def run(self) -> int:
        """Measure, print, write."""
        from headrace.report.command import run_ladder

        return run_ladder(
            self.env,
            rungs=None if self.rungs is None else _parts(self.rungs),
            num_envs=_numbers("--num-envs", self.num_envs),
            steps=self.steps,
            fused_steps=_numbers("--fused-steps", self.fused_steps),
            state_bytes=_numbers("--state-bytes", self.state_bytes),
            seconds=self.seconds,
            repeats=self.repeats,
            threads=self.threads,
            workers=self.workers,
            seed=self.seed,
            update_seconds=self.update_seconds,
            json_file=self.json,
            plot_file=self.plot,
            options=dict(_option(text) for text in self.set),
        )


@dataclass(frozen=True)
class Envs:
    """List the environments: their spaces, time limits and definitions.

    A gym definition gives the rungs python and processes; an array one numpy, torch and xla; a
    native one the native rungs.
    """

    gymnasium: FlagCreatePairsOff[bool] = False
    """Gymnasium's ids as well."""

    def run(self) -> int:
        """Print the list."""
        from headrace.report.catalogue import print_environments

        print_environments(with_gymnasium=self.gymnasium)
        return 0


COMMANDS: dict[str, Callable[..., Any]] = {"ladder": Ladder, "envs": Envs}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 2 for a mistake in it, 130 for Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no "×" gets a "?"
            stream.reconfigure(errors="replace")
    try:
        if given[:1] == ["--version"]:
            print(f"headrace {__version__}")
            return 0
        command = tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="headrace", description=DESCRIPTION, args=given or ["--help"]
        )
        return command.run()
    except HeadraceError as error:
        print(f"headrace: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(option: str, text: str | None) -> list[int] | None:
    """Whole numbers of at least 1, separated by commas."""
    if text is None:
        return None
    parts = _parts(text.replace("_", ""))
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise HeadraceError(
            f"{option} {text}: give a whole number of at least 1, or several separated by commas"
        )
    return [int(part) for part in parts]


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise HeadraceError(f"--set {text}: give NAME=VALUE")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False}.get(value.lower(), value)
