# SPDX-License-Identifier: Apache-2.0
"""What every peer's script in this folder shares: the clock, the bars, one JSON line at the end.

    race = Race("stable-baselines3")          # reads the command line
    race.begin()                              # everything is built; now it learns
    with race.evaluating(): score = ...       # the mean of 20 episodes
    if race.decided(env_steps, score): ...    # solved, or out of time: stop
    race.learn_on(...)                        # where --steady asks for its rate without evaluation
    race.report()

The clock starts with the process, as the system knows it, so that imports and compilation count.
Evaluation counts as well; only `train_rate`, the rate of the training loop, leaves it out. What
the framework prints goes to stderr; stdout carries the one line. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

EPISODES = 20
"""Of an evaluation."""


@dataclass(frozen=True)
class Task:
    """An environment, and the mean return at which it counts as solved."""

    env: str
    bar: float


TASKS = {
    "ppo-cartpole": Task("CartPole-v1", 475.0),
    "sac-pendulum": Task("Pendulum-v1", -200.0),
    "sac-double-pendulum": Task("InvertedDoublePendulum-v5", 9000.0),
    "sac-cheetah": Task("HalfCheetah-v5", float("inf")),
}


def process_age() -> float:
    """Seconds since this process was started (to the system's tick, a hundredth)."""
    # The name in field 2 may hold spaces and brackets: count from its end.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


class Race:
    """One training run of a peer, against the clock."""

    def __init__(self, package: str, tasks: tuple[str, ...], description: str | None = None):
        """`tasks` are those that the script knows."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("task", choices=tasks)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--limit", type=float, default=150.0, help="seconds, from the start")
        parser.add_argument("--every", type=int, default=0, help="steps between evaluations")
        parser.add_argument("--steady", type=float, default=0, help="seconds of learning on, timed")
        parser.add_argument("--threads", type=int, default=1, help="of torch")
        self.add_arguments(parser)
        self.arguments = parser.parse_args()
        self.task = TASKS[self.arguments.task]
        self.seed: int = self.arguments.seed
        self.package = package
        self.result: dict[str, object] = {}
        self._limit: float = self.arguments.limit
        self._evaluations: list[tuple[int, float, float]] = []
        self._evaluating = 0.0
        self._begun = self._steps_begun = 0.0
        self._replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.argv[1:] = []  # several frameworks read it too

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """For scripts that have more of them."""

    def begin(self, env_steps: int = 0) -> None:
        """From here on the training loop is timed; `env_steps` were made before."""
        self._begun, self._steps_begun = process_age(), env_steps
        self._evaluating = 0.0

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Around an evaluation."""
        start = time.perf_counter()
        yield
        self._evaluating += time.perf_counter() - start

    def decided(self, env_steps: int, score: float) -> bool:
        """Note an evaluation; whether to stop now."""
        score = float(score)
        self._evaluations.append((env_steps, process_age(), score))
        print(f"{env_steps} steps, {process_age():.1f} s: {score:.1f}", file=sys.stderr)
        return score >= self.task.bar or self.late

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return process_age() >= self._limit

    def learn_on(self, advance: Callable[[], int]) -> None:
        """Where --steady asks for it, time further learning: `advance` returns its steps."""
        seconds: float = self.arguments.steady
        if not seconds:
            return
        advance()
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            steps += advance()
        self.result["steady_rate"] = steps / elapsed

    def report(self, env_steps: int | None = None, frames_per_step: int | None = None) -> None:
        """Print the line. Without evaluations, `env_steps` says how far it came.

        `frames_per_step` are the transitions learnt from for each step, where that is wanted.
        """
        end = process_age()
        if self._evaluations:
            env_steps, end, score = self._evaluations[-1]
            self.result |= {"score": score, "solved": score >= self.task.bar}
        looped = end - self._begun - self._evaluating
        rate = ((env_steps or 0) - self._steps_begun) / looped
        if frames_per_step is not None:
            self.result["frames_rate"] = rate * frames_per_step
        line = {
            "package": self.package,
            "version": version(self.package),
            "task": self.arguments.task,
            "seed": self.seed,
            "seconds": end,
            "env_steps": env_steps,
            "start_seconds": self._begun,
            "train_rate": rate,
            "evaluations": len(self._evaluations),
            "evaluating_seconds": self._evaluating,
            "curve": self._evaluations,
            **self.result,
        }
        print(json.dumps(line), file=self._replies, flush=True)
