# SPDX-License-Identifier: Apache-2.0
"""What a serial iteration learns from a batch that came from a host: by NumPy, or by XLA."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from headrace.collect.base import Request
from headrace.collect.batch import Batch
from headrace.learn.algorithm import Algorithm, Metrics, State
from headrace.learn.replay import Ring
from headrace.train.experience import rollout_of


class Learnt(NamedTuple):
    """What an iteration's learning gives."""

    learner: State
    ring: Ring | None
    metrics: Metrics
    updates: int
    frames: int


class Learner(Protocol):
    """Learns from one batch after the other."""

    def ring(self, request: Request) -> Ring | None:
        """The replay to begin with, where there is any."""
        ...

    def __call__(self, learner: State, ring: Ring | None, batch: Batch) -> Learnt:
        """The arrays given are gone afterwards; the batch's memory may be written again."""
        ...


class HostLearner(Learner):
    """Each batch is one rollout, learnt from once, without JAX."""

    def __init__(self, algorithm: Algorithm):
        self._algorithm = algorithm
        self._update = algorithm.host_update()

    def ring(self, request: Request) -> None:
        """None."""

    def __call__(self, learner: State, ring: Ring | None, batch: Batch) -> Learnt:
        """One update, of as many minibatches as the algorithm makes of it."""
        learner, metrics = self._update(learner, rollout_of(batch))
        return learnt_on_policy(self._algorithm, learner, metrics, batch)


def learnt_on_policy(
    algorithm: Algorithm, learner: State, metrics: Metrics, batch: Batch
) -> Learnt:
    """What one update gives, with what it counts."""
    config = algorithm.config
    frames = batch.reward.size * config.epochs
    return Learnt(learner, None, metrics, config.epochs * config.minibatches, frames)


def mean_metrics(all_of_them: list[Metrics]) -> dict[str, float]:
    """Of several updates: the mean of each."""
    names = all_of_them[0] if all_of_them else ()
    return {name: float(np.mean([one[name] for one in all_of_them])) for name in names}
