# SPDX-License-Identifier: Apache-2.0
"""`headrace train`: its flags are those of the run, and those of the algorithm that is chosen.

So arguments are read twice: once for what decides on the flags and their defaults (environment,
algorithm, preset, file), and then, by the dataclass that is made from these, all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, arg

from headrace.cli.arguments import option
from headrace.errors import HeadraceError

_DECIDING = ("algo", "preset", "mode", "definition", "learner")
"""Flags that decide on others' defaults."""
_SWITCHES = ("--quiet", "--video", "--no-plot")
"""Flags that no value follows."""


@dataclass(frozen=True)
class Train:
    """Learn an environment, until it is solved or the time is up. Everything goes into a folder.

    headrace train ENV --algo ALGO --help shows the flags of that algorithm, with the defaults that
    this environment has. Ctrl-C stops with a checkpoint; headrace resume continues.
    """

    env: Annotated[Positional[str], arg(metavar="ENV")]
    """Environment: one of `headrace envs`, or any id of Gymnasium's."""
    algo: Annotated[
        str | None,
        arg(metavar="ppo|sac|td3|dqn", help_behavior_hint="(default: by the actions)"),
    ] = None
    """Algorithm."""
    preset: Annotated[
        str | None,
        arg(metavar="NAME", help_behavior_hint="(default: the environment's, if it has one)"),
    ] = None
    """Where defaults come from: "none" for the algorithm's own."""
    mode: Literal["auto", "compiled", "serial", "async"] = "auto"
    """compiled: environments and updates in one program. serial: one process, any environment.
    async: samplers and learner in processes of their own."""
    definition: Literal["auto", "native", "array", "gym"] = "auto"
    """Which definition of the environment."""
    learner: Literal["auto", "host", "xla"] = "auto"
    """What updates are made by. host: NumPy and native code, which begin at once; PPO with dense
    layers. xla: compiled programs."""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE")] = ()
    """An option of the environment, or max_episode_steps; give it again for another."""
    config: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Settings from a file, JSON or TOML; the config.json of another run, for instance. Flags go
    before it."""
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: a new one in ./runs)")
    ] = None
    """Folder of the run: a new or an empty one."""
    quiet: FlagCreatePairsOff[bool] = False
    """Say nothing but errors."""
    video: FlagCreatePairsOff[bool] = False
    """Film the policy at the end, where Gymnasium draws the environment."""
    no_plot: FlagCreatePairsOff[bool] = False
    """Do not draw the curve at the end."""

    def run(self) -> int:
        """Train."""
        from headrace.report.training import run_train
        from headrace.train.resolve import resolve

        config = resolve(self.env, **_chosen(vars(self)))
        own = {name: getattr(self, name, None) for name in ("settings", "algorithm")}
        config = dataclasses.replace(config, **{k: v for k, v in own.items() if v is not None})
        return run_train(
            config, out=self.out, quiet=self.quiet, video=self.video, plot=not self.no_plot
        )


def train_command(arguments: Sequence[str]) -> type[Train]:
    """`Train` with the flags, and the defaults, that these arguments ask for."""
    from headrace.train.resolve import resolve

    wants_help = not {"-h", "--help"}.isdisjoint(arguments)
    given = _peek(arguments)
    if given["env"] is None:
        if not wants_help:
            return Train  # which says what is missing
        given["env"] = "CartPole-v1"
    config = resolve(given["env"], **_chosen(given))
    fields: list[Any] = [
        ("settings", Annotated[type(config.settings), arg(name="")], config.settings),
        ("algorithm", Annotated[type(config.algorithm), arg(name="")], config.algorithm),
    ]
    made = dataclasses.make_dataclass("Train", fields, bases=(Train,), frozen=True)
    made.__doc__ = Train.__doc__
    return made


def _peek(arguments: Sequence[str]) -> dict[str, Any]:
    """Those arguments that decide on the others."""
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in _DECIDING:
        reader.add_argument(f"--{name}")
    reader.add_argument("--config", type=Path)
    reader.add_argument("--set", action="append", default=[])
    with contextlib.suppress(argparse.ArgumentError, SystemExit):
        found, rest = reader.parse_known_args(list(arguments))
        return vars(found) | {"env": _first_positional(rest)}
    return {"env": None}


def _first_positional(arguments: Sequence[str]) -> str | None:
    """The first that is neither a flag nor the value of one."""
    after_flag = False
    for one in arguments:
        if one.startswith("-"):
            after_flag = "=" not in one and one not in _SWITCHES
        elif not after_flag:
            return one
        else:
            after_flag = False
    return None


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """As `resolve` takes it."""
    out = {name: given.get(name) for name in _DECIDING}
    out = {name: None if value == "auto" else value for name, value in out.items()}
    options = dict(option(text) for text in given.get("set") or ())
    clash = sorted({"seed", "num_envs", "steps"} & set(options))
    if clash:
        raise HeadraceError(f"--set {clash[0]}: that is --{clash[0].replace('_', '-')}")
    return out | {"options": options, "config_file": given.get("config")}
