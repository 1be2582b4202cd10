# SPDX-License-Identifier: Apache-2.0
"""What every collector returns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class Batch:
    """T x N real transitions, time-major; none is spent on resetting.

    Arrays are views into the collector's buffers, valid until its next `collect()`; `copy()` owns.
    They are NumPy arrays, or JAX ones from the fused XLA rungs.

    Ends of episodes come in one of two forms. From hosts they are compact: `final_obs[E, ...]`,
    `end_at[E, 2]` (step, environment) in that order, `episode_return[E]`, `episode_length[E]`. From
    inside XLA they are dense: `end_at` is None, `final_obs[T, N, ...]` is the observation before
    any reset, and returns and lengths are `[T, N]`, 0 where no episode ended. `next_obs()` and
    `episodes()` read both.
    """

    obs: Array
    """[T, N, ...] what the action was chosen from."""
    last_obs: Array
    """[N, ...] what the next action would see."""
    action: Array
    """[T, N, ...] in the smallest dtype that holds it."""
    reward: Array
    """[T, N] float32; it belongs to the one who acted."""
    terminated: Array
    """[T, N] bool: the rules ended the episode."""
    truncated: Array
    """[T, N] bool: the time limit did."""
    final_obs: Array
    """Where episodes ended; see above."""
    end_at: Array | None
    episode_return: Array
    episode_length: Array
    extras: dict[str, Array] = field(default_factory=dict)
    """[T, N, ...] the policy's own outputs."""
    mask: Array | None = None
    """[T, N, bytes] uint8: the legal actions at `obs`, where some may be illegal.

    Action a is bit a % 8 of byte a // 8, as `numpy.unpackbits(..., bitorder="little")` reads it.
    """
    last_mask: Array | None = None
    """[N, bytes] at `last_obs`."""
    final_mask: Array | None = None
    """As `final_obs`."""
    to_play: Array | None = None
    """[T, N] uint8: the player who acts at `obs`, where there are several."""
    last_to_play: Array | None = None
    final_to_play: Array | None = None

    @property
    def steps(self) -> int:
        """T."""
        return self.reward.shape[0]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.reward.shape[1]

    @property
    def ended(self) -> Array:
        """[T, N] whether the episode ended, either way."""
        return self.terminated | self.truncated

    def next_obs(self) -> Array:
        """[T, N, ...] the observation that followed each action, before any reset."""
        return self._next(self.obs, self.last_obs, self.final_obs)

    def next_mask(self) -> Array | None:
        """[T, N, bytes] which actions were legal then, where some may be illegal."""
        return self._next(self.mask, self.last_mask, self.final_mask)

    def next_to_play(self) -> Array | None:
        """[T, N] whose turn it was then, where several play."""
        return self._next(self.to_play, self.last_to_play, self.final_to_play)

    def _next(self, rows: Array, last: Array, final: Array) -> Array:
        if self.end_at is None or rows is None:
            return final
        out = np.concatenate([rows[1:], last[None]])
        out[self.end_at[:, 0], self.end_at[:, 1]] = final
        return out

    def episodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns and lengths of the episodes that ended, in the order (step, environment)."""
        if self.end_at is not None:
            return self.episode_return, self.episode_length
        ended = np.asarray(self.ended)
        return np.asarray(self.episode_return)[ended], np.asarray(self.episode_length)[ended]

    def transition_bytes(self) -> float:
        """Bytes written per transition."""
        arrays = [self.obs, self.action, self.reward, self.terminated, self.truncated]
        arrays += [self.final_obs, self.end_at, self.episode_return, self.episode_length]
        arrays += [self.mask, self.final_mask, self.to_play, self.final_to_play]
        arrays += self.extras.values()
        total = sum(array.nbytes for array in arrays if array is not None)
        return total / (self.steps * self.num_envs)

    def copy(self) -> Batch:
        """The same, in memory of its own."""
        own = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if isinstance(value, dict):
                own[item.name] = {key: array.copy() for key, array in value.items()}
            else:
                own[item.name] = None if value is None else value.copy()
        return Batch(**own)
