# SPDX-License-Identifier: Apache-2.0
"""The smallest trainer that is honest: it learns a number, and can be stopped and continued."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.spec import EnvEntry, EnvSpec
from headrace.learn.algorithm import Algorithm
from headrace.policy import Policy
from headrace.train.config import RunConfig, Settings
from headrace.train.run_folder import RunFolder
from headrace.train.runner import Runner
from headrace.train.trainer import Progress
from headrace.train.watch import Silent

SPEC = EnvSpec(
    EnvEntry("Number-v0"),
    gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32),
    gymnasium.spaces.Discrete(2),
    None,
)


@dataclass(frozen=True)
class Config:
    """Of the smallest algorithm."""

    rate: float = 0.5
    """Of learning."""
    widths: tuple[int, ...] = (2, 3)
    """Of nothing."""


class Params(NamedTuple):
    number: Any
    rest: Any


class Smallest(Algorithm):
    name = "smallest"
    on_policy = True

    def init(self, seed: int) -> Any:
        return {"params": Params(np.float32(seed), ()), "count": np.zeros((), np.int64)}

    def acting(self, state: Any) -> Any:
        return state["params"]

    def policy(self, library: Any, *, deterministic: bool = False) -> Policy:
        return Policy(lambda params, obs, mask, key: (obs[:, 0] > params.number, {}), library)

    def update(self, state: Any, experience: Any) -> Any:
        number = np.float32(state["params"].number + self.config.rate * experience)
        return {"params": Params(number, ()), "count": state["count"] + 1}, {"loss/number": number}


class NumberTrainer:
    """Moves the number by what a generator draws; `breaks_at` is the iteration that gives NaN."""

    def __init__(self, seed: int = 0, breaks_at: int | None = None):
        self.algorithm = Smallest(SPEC, Config())
        self.num_envs, self.steps = 2, 5
        self._learner = self.algorithm.init(seed)
        self._breaks_at = breaks_at
        self.calls: list[int] = []

    @property
    def state(self) -> Any:
        return self._learner

    def load_state(self, tree: Any) -> None:
        self._learner = tree

    def advance(self, iterations: int) -> Progress:
        self.calls.append(iterations)
        for _ in range(iterations):
            done = int(self._learner["count"])
            draw = np.random.default_rng(done).normal()
            if done == self._breaks_at:
                draw = np.nan
            self._learner, metrics = self.algorithm.update(self._learner, draw)
        done = int(self._learner["count"])
        returns = np.full(iterations, float(done), np.float32)
        numbers = {name: float(value) for name, value in metrics.items()}
        return Progress(10 * done, done, numbers, returns, returns.astype(np.int32), 10 * done)

    def acting(self) -> Any:
        return self._learner["params"]

    def close(self) -> None:
        pass


def a_config(**settings: Any) -> RunConfig:
    named = {"total_steps": 200, "evaluation_every": 50, "num_envs": 2, "steps": 5} | settings
    return RunConfig(SPEC.id, "smallest", Config(), Settings(**named), "serial", "gym")


def a_runner(
    config: RunConfig, folder: RunFolder, trainer: Any = None, watch: Any = None, **options: Any
) -> Runner:
    def evaluate(params: Params) -> np.ndarray:
        return np.array([params.number, params.number + 1], np.float32)

    trainer = trainer or NumberTrainer()
    return Runner(config, trainer, folder, evaluate, watch or Silent(), **options)


def a_run(path: Path, trainer: Any = None, watch: Any = None, options: Any = None, **settings: Any):
    config = a_config(**settings)
    with RunFolder.create(path, config) as folder:
        return a_runner(config, folder, trainer, watch, **(options or {})).run()
