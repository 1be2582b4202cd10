# SPDX-License-Identifier: Apache-2.0
"""The learner's programs: some updates in one dispatch, and the new parameters as one vector."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.learn.algorithm import Acting, Algorithm, Metrics, Rollout, State, Transitions
from headrace.train import trees


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


def flat(acting: Acting) -> Any:
    """As `weights.FlatTree` has it."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in trees.named(acting).values()])


def one_device(algorithm: Algorithm) -> Updates:
    """One rollout; or, off-policy, batches [K, B, ...], one update after another."""

    def from_rollout(state: State, rollout: Rollout) -> Updated:
        state, metrics = algorithm.update(state, rollout)
        return Updated(state, flat(algorithm.acting(state)), metrics)

    def from_batches(state: State, batches: Transitions) -> Updated:
        state, metrics = lax.scan(algorithm.update, state, batches)
        means = jax.tree.map(lambda values: values.mean(0), metrics)
        return Updated(state, flat(algorithm.acting(state)), means)

    return jax.jit(from_rollout if algorithm.on_policy else from_batches, donate_argnums=0)


def to_device(experience: Any) -> Any:
    """Aligned arrays as the device takes them: without a copy where it is the host itself."""
    return jax.device_put(experience)


def as_numbers(metrics: Metrics) -> dict[str, float]:
    """On the host."""
    return {name: float(np.asarray(value)) for name, value in metrics.items()}
