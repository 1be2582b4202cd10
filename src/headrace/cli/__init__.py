# SPDX-License-Identifier: Apache-2.0
"""The command line: one file a command.

A command is a frozen dataclass: its fields are the arguments, its docstrings the help, and `run()`
returns the exit code. What it needs is imported in `run()`, so that `--help` costs next to nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tyro

from headrace import __version__
from headrace.cli.collect import Collect
from headrace.cli.envs import Envs
from headrace.cli.eval import Eval
from headrace.cli.ladder import Ladder
from headrace.cli.play import Play
from headrace.cli.resume import Resume
from headrace.cli.train import Train, train_command
from headrace.cli.tune import Tune
from headrace.cli.watch import Watch
from headrace.errors import HeadraceError

INTERRUPTED = 130

DESCRIPTION = """Reinforcement-learning experience at the hardware's limit.

headrace COMMAND --help explains a command; headrace --version prints the version."""

COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "resume": Resume,
    "eval": Eval,
    "ladder": Ladder,
    "collect": Collect,
    "play": Play,
    "tune": Tune,
    "watch": Watch,
    "envs": Envs,
}


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
        commands = COMMANDS
        if given[:1] == ["train"]:
            commands = COMMANDS | {"train": train_command(given[1:])}
        command = tyro.extras.subcommand_cli_from_dict(
            commands, prog="headrace", description=DESCRIPTION, args=given or ["--help"]
        )
        return command.run()
    except HeadraceError as error:
        print(f"headrace: error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"headrace: error: there is too little memory: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def program() -> NoReturn:
    """The command as a process.

    Python would end by taking everything apart, which takes JAX longer than some runs do. So what
    has asked to be told of the end is told, and the process is gone. (Not where MPI is: that asks
    in a way of its own.)
    """
    code = main()
    if "jax" in sys.modules and "mpi4py" not in sys.modules:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.flush()
            sys.stderr.flush()
        atexit._run_exitfuncs()
        os._exit(code)
    sys.exit(code)
