# SPDX-License-Identifier: Apache-2.0
"""Transitions out of consecutive steps."""

from __future__ import annotations

from headrace.envs.array.namespace import Array, Namespace
from headrace.learn.algorithm import Rollout, Transitions
from headrace.learn.returns import n_step


def transitions(ns: Namespace, rollout: Rollout, discount: float, steps: int = 1) -> Transitions:
    """All T x N of a rollout, in the order of time, of up to `steps` rewards each.

    Fewer where the episode ended, or the rollout. NumPy or JAX arrays.
    """
    reward, factor, last = n_step(
        ns, rollout.reward, rollout.terminated, rollout.truncated, discount, steps
    )
    envs = ns.xp.arange(reward.shape[1])

    def flat(rows: Array) -> Array:
        return rows.reshape((-1, *rows.shape[2:]))

    def following(rows: Array) -> Array:
        return flat(rows if steps == 1 else rows[last, envs])

    masked = rollout.mask is not None
    return Transitions(
        obs=flat(rollout.obs),
        action=flat(rollout.action),
        reward=flat(reward),
        discount=flat(factor),
        next_obs=following(rollout.next_obs),
        mask=flat(rollout.mask) if masked else None,
        next_mask=following(rollout.next_mask) if masked else None,
    )
