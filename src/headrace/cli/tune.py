# SPDX-License-Identifier: Apache-2.0
"""`headrace tune`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg

from headrace.cli.arguments import Whole, option


@dataclass(frozen=True)
class Tune:
    """Measure how many samplers, environments, transitions and updates serve this machine best.

    It maximises the transitions learnt from in a second, as long as samplers make the steps that
    are asked for and the batch is no larger than allowed. headrace train does the same first, and
    takes the choice that is kept here; what is given to it as a flag wins.
    """

    env: Annotated[Positional[str], arg(metavar="ENV")]
    """Environment: one of `headrace envs`, any id of Gymnasium's, or package.module:Class."""
    algo: Annotated[
        str | None,
        arg(metavar="ppo|sac|td3|dqn", help_behavior_hint="(default: by the actions)"),
    ] = None
    """Algorithm."""
    set: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUE")] = ()
    """An option of the environment, or max_episode_steps; give it again for another."""
    sampling_rate: Annotated[
        float | None, arg(metavar="STEPS", help_behavior_hint="(default: 1,000)")
    ] = None
    """Environment steps a second that samplers must make."""
    largest_batch: Annotated[
        Whole, arg(help_behavior_hint="(default: twice the algorithm's own)")
    ] = None
    """Transitions of an update, at most."""
    samplers: Annotated[Whole, arg(help_behavior_hint="(default: measured)")] = None
    """Sampler processes."""
    envs_per_sampler: Annotated[Whole, arg(help_behavior_hint="(default: measured)")] = None
    """Environments in each of them."""
    json: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything measured to this file."""

    def run(self) -> int:
        """Measure, print, keep."""
        from headrace.report.tuning import run_tune

        names = ("sampling_rate", "largest_batch", "samplers", "envs_per_sampler")
        given = {name: getattr(self, name) for name in names}
        return run_tune(
            self.env,
            algo=self.algo,
            options=dict(option(text) for text in self.set),
            given={name: value for name, value in given.items() if value is not None},
            json_file=self.json,
        )
