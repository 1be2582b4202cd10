# SPDX-License-Identifier: Apache-2.0
"""The learner's XLA programs: updates in one dispatch, and the new parameters as one vector."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from headrace.learn.algorithm import Acting, Algorithm, Rollout, State, Transitions
from headrace.runtime.updates import Updated, Updates
from headrace.train import trees


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

    program = jax.jit(from_rollout if algorithm.on_policy else from_batches, donate_argnums=0)

    def dispatch(state: State, experience: Any) -> Updated:
        # Aligned arrays are taken without a copy where the device is the host itself.
        return program(state, jax.device_put(experience))

    return dispatch
