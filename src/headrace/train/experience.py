# SPDX-License-Identifier: Apache-2.0
"""Batches of collectors as the forms of experience that algorithms take."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.collect.batch import Batch
from headrace.envs.array.namespace import namespace
from headrace.learn.algorithm import Rollout, Transitions
from headrace.learn.returns import n_step


def rollout_of(batch: Batch) -> Rollout:
    """For on-policy algorithms: all steps [T, N, ...]."""
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


def transitions_of(batch: Batch, discount: float, steps: int = 1) -> Transitions:
    """For off-policy algorithms, of a batch from a host: its transitions [T x N, ...].

    With more than one of `steps`, sums of as many rewards; of fewer where the episode, or the
    batch, ended before.
    """
    total, factor, last = n_step(
        namespace("numpy"), batch.reward, batch.terminated, batch.truncated, discount, steps
    )
    columns = np.arange(batch.num_envs)

    def followed(rows: Any) -> Any:
        return None if rows is None else _flat(rows[last, columns])

    return Transitions(
        obs=_flat(batch.obs),
        action=_flat(batch.action),
        reward=_flat(total),
        discount=_flat(factor),
        next_obs=followed(batch.next_obs()),
        mask=_flat(batch.mask),
        next_mask=followed(batch.next_mask()),
    )


def _flat(rows: Any) -> Any:
    return None if rows is None else rows.reshape(-1, *rows.shape[2:])
