# SPDX-License-Identifier: Apache-2.0
"""Batches of collectors as algorithms take them."""

from __future__ import annotations

from headrace.collect.batch import Batch
from headrace.learn.algorithm import Rollout


def rollout_of(batch: Batch) -> Rollout:
    """All steps [T, N, ...]; where the batch is views, so is this."""
    return Rollout(
        obs=batch.obs,
        action=batch.action,
        reward=batch.reward,
        terminated=batch.terminated,
        truncated=batch.truncated,
        next_obs=batch.next_obs(),
        extras=dict(batch.extras),
        mask=batch.mask,
        next_mask=batch.next_mask(),
        to_play=batch.to_play,
        next_to_play=batch.next_to_play(),
    )
