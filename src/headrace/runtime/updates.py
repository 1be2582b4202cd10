# SPDX-License-Identifier: Apache-2.0
"""What the learner does with a set of experience, by XLA or on the host itself."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace.learn.algorithm import Algorithm, Metrics, State
from headrace.runtime.weights import FlatTree
from headrace.train.config import RunConfig


class Updated(NamedTuple):
    """What a dispatch gives."""

    state: State
    vector: Any
    """Parameters to act with, flat."""
    metrics: Metrics
    """Means over its updates."""


class Updates(Protocol):
    """`(state, experience) -> Updated`; the state that was given is gone afterwards."""

    def __call__(self, state: State, experience: Any) -> Updated:
        """One dispatch; the experience's memory may be written again when it is done."""
        ...


def updates_of(algorithm: Algorithm, config: RunConfig) -> Updates:
    """By the learner that the run has."""
    if config.learner == "host":
        return HostUpdates(algorithm)
    from headrace.runtime.two_devices import make_updates
    from headrace.train.cache import use_cache

    use_cache()
    return make_updates(algorithm, config.settings)


class HostUpdates:
    """Rollouts learnt from without JAX."""

    def __init__(self, algorithm: Algorithm):
        self._algorithm = algorithm
        self._update = algorithm.host_update()

    def __call__(self, state: State, experience: Any) -> Updated:
        """One update, done when this returns."""
        state, metrics = self._update(state, experience)
        return Updated(state, FlatTree(self._algorithm.acting(state)).vector, metrics)


def as_numbers(metrics: Metrics) -> dict[str, float]:
    """On the host."""
    return {name: float(np.asarray(value)) for name, value in metrics.items()}
