# SPDX-License-Identifier: Apache-2.0
"""What steps turn out to be worth: advantages and returns, for one player or two.

A reward belongs to the one who acted. With s = -1 where the player to move changes, and 1 where
not,

    δ = r + γ (1 - terminated) s V(next) - V
    A = δ + γ λ (1 - ended) s A(next)

so that self-play by turns, and play against an opponent inside the environment, are one formula.
"""

from __future__ import annotations

from typing import Any

from headrace.envs.array.namespace import Array, Namespace


def turn_signs(ns: Namespace, to_play: Array | None, next_to_play: Array | None) -> Array | float:
    """s, [T, N]: -1 where the player to move changes; 1 for all where there is one player."""
    if to_play is None:
        return 1.0
    return 1 - 2 * ns.to_float(to_play != next_to_play)


def advantages(
    ns: Namespace,
    reward: Array,
    terminated: Array,
    truncated: Array,
    value: Array,
    next_value: Array,
    sign: Array | float,
    discount: float,
    trace: float,
) -> Array:
    """GAE (Schulman et al., 2016), [T, N]; `trace` is λ.

    `next_value` is of what followed each action, before any reset; where the rules ended the
    episode it does not count. A return is an advantage plus its value.
    """
    going_on = 1 - ns.to_float(terminated)
    unbroken = 1 - ns.to_float(terminated | truncated)
    error = reward + discount * going_on * sign * next_value - value
    weight = discount * trace * unbroken * sign

    def backwards(after: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        error, weight = row
        advantage = error + weight * after
        return advantage, advantage

    return ns.scan(backwards, ns.xp.zeros_like(error[0]), (error, weight), reverse=True)


def discounted_sums(ns: Namespace, reward: Array, ended: Array, discount: float) -> Array:
    """The discounted sums [T, N] of an episode's rewards up to each step, from the batch's first.

    What their spread is, rewards are scaled by: they need no value, and nothing of the batch
    before, at the price of starting from 0 with every batch.
    """

    def onwards(before: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, ended = row
        total = discount * before + reward
        return ns.xp.where(ended, 0.0, total), total

    return ns.scan(onwards, ns.xp.zeros_like(reward[0]), (reward, ended))


def n_step(
    ns: Namespace,
    reward: Array,
    terminated: Array,
    truncated: Array,
    discount: float,
    steps: int,
) -> tuple[Array, Array, Array]:
    """Sums of up to n rewards [T, N]: fewer where the episode, or the batch, ended before.

    Also γ^k, or 0 where the rules ended the episode, for the value of what followed the last of
    the k rewards, and `last` (int32), the row of that last reward: `next_obs[last, env]` is what
    followed. NumPy or JAX arrays.
    """
    xp = ns.xp
    rows = reward.shape[0]
    ended: Any = terminated | truncated
    last = xp.arange(rows, dtype=xp.int32)[:, None] + xp.zeros_like(reward, dtype=xp.int32)
    total, factor = reward, xp.full_like(reward, discount)
    going_on = ~ended
    for ahead in range(1, min(steps, rows)):
        behind = _ahead(xp, going_on, ahead, last)
        total = total + xp.where(behind, factor * _shifted(xp, reward, ahead), 0)
        factor = xp.where(behind, factor * discount, factor)
        last = last + behind
        going_on = behind & ~_shifted(xp, ended, ahead)
    over = xp.take_along_axis(terminated, last, axis=0)
    return total, xp.where(over, 0, factor), last


def _ahead(xp: Any, going_on: Array, ahead: int, last: Array) -> Array:
    """Where the episode goes on and the batch has a row `ahead` of this one."""
    inside = xp.arange(going_on.shape[0])[:, None] + ahead < going_on.shape[0]
    return going_on & inside


def _shifted(xp: Any, rows: Array, ahead: int) -> Array:
    """Row t is what was row t + ahead; the last ones come again, and do not count."""
    return xp.concat([rows[ahead:], rows[-ahead:]], axis=0)
