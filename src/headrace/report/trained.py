# SPDX-License-Identifier: Apache-2.0
"""The estimate of a whole run put to the test: short training, with generation from each rung.

A rung is timed three times over: making batches with the policy that learns; the update by itself;
and both in turn, as training does it. The estimate knows the first two, the run is the third.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter

import jax

from headrace.collect.base import Request
from headrace.collect.rungs import rung_class
from headrace.errors import HeadraceError
from headrace.interrupt import Interrupts
from headrace.learn.ppo import Ppo
from headrace.report.impact import generation_share, run_speedup
from headrace.train.serial import SerialTrainer, library_of


@dataclass(frozen=True)
class TrainedRung:
    """Seconds of an iteration, in parts and whole."""

    rung: str
    generation: float
    """A batch by the learning policy, nothing else going on."""
    update: float
    """Its update, nothing else going on."""
    iteration: float
    """Both, in training."""

    @property
    def share(self) -> float:
        """The part of a run that generation takes, by the estimate."""
        return generation_share(self.generation, self.update)

    def estimated(self, baseline: TrainedRung) -> float:
        """How many times faster a run is than with the baseline, from the parts."""
        return run_speedup(baseline.generation, self.generation, self.update)

    def measured(self, baseline: TrainedRung) -> float:
        """The same, from the runs."""
        return baseline.iteration / self.iteration


def train_with(
    rung: str,
    request: Request,
    algorithm: Ppo,
    update: float,
    seconds: float,
    repeats: int,
    interrupts: Interrupts,
) -> TrainedRung:
    """Time this rung's generation, and training with it, each for about `seconds`."""
    kind = rung_class(rung)
    library = library_of(kind)
    if library is None:
        raise HeadraceError(f"the {rung} rung takes no policy")
    acting = algorithm.acting(algorithm.init(0))
    acts = replace(request, policy=algorithm.policy(library))
    trainer = SerialTrainer(
        algorithm,
        request.spec,
        num_envs=request.num_envs,
        steps=request.steps,
        seed=int(request.seed),
        definition=kind.definition,
        rung=rung,
        threads=request.threads,
        workers=request.workers,
    )

    def generate(batches: int) -> float:
        """Seconds of each; a batch that nobody learns from."""
        start = perf_counter()
        for _ in range(batches):
            jax.block_until_ready(source.collect(acting).reward)
        return (perf_counter() - start) / batches

    def train(iterations: int) -> float:
        start = perf_counter()
        trainer.advance(iterations)
        return (perf_counter() - start) / iterations

    with closing(trainer), kind(acts) as source:
        generate(2)
        train(1)
        once = max(train(1), 1e-9)
        count = max(round(seconds / repeats / once), 1)
        alone, both = [], []
        begin = perf_counter()
        # In turn: what a step costs depends on how far the episodes are.
        while len(both) < 3 or (len(both) < repeats and perf_counter() - begin < 2 * seconds):
            interrupts.check()
            alone.append(generate(count))
            both.append(train(count))
    return TrainedRung(rung, min(alone), update, min(both))
