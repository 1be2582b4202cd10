# SPDX-License-Identifier: Apache-2.0
"""What every way of running an algorithm offers to whoever drives it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace.learn.algorithm import Acting, Algorithm

Tree = Any
"""A pytree of arrays."""


class Progress(NamedTuple):
    """Where a trainer is, and what the last iterations gave."""

    env_steps: int
    """Of all environments together, since the run began."""
    updates: int
    """Of the algorithm, since the run began: optimiser steps, each on one (mini)batch."""
    metrics: dict[str, float]
    """The algorithm's own, of the last iterations: a number each."""
    episode_returns: np.ndarray
    """[E] of the episodes that ended in the last iterations."""
    episode_lengths: np.ndarray
    """[E]"""
    update_frames: int = 0
    """Transitions that updates have learnt from since the run began, each time that one did."""
    generation_seconds: float | None = None
    """Spent on experience since this trainer was made; None where one program does both."""
    update_seconds: float | None = None
    """Spent on updates; None where one program does both."""


NOTHING = Progress(0, 0, {}, np.zeros(0, np.float32), np.zeros(0, np.int32))
"""Where every run begins."""


class Trainer(Protocol):
    """Experience and updates, in some arrangement of programs and processes.

    Constructed with `(algorithm, spec, num_envs=, steps=, seed=, definition=...)`. The same
    arguments and as many iterations give the same state, in however many calls of `advance` they
    come; an arrangement that cannot promise this says so.
    """

    algorithm: Algorithm
    num_envs: int
    steps: int
    """Of every environment in an iteration, which takes num_envs x steps environment steps."""

    @property
    def state(self) -> Tree:
        """All there is: algorithm, environments, replay, counters. What a checkpoint keeps."""
        ...

    def load_state(self, tree: Tree) -> None:
        """Continue from what another trainer of the same arguments had as its `state`."""
        ...

    def advance(self, iterations: int) -> Progress:
        """So many times: steps of every environment, and the updates that go with them.

        Whoever drives it asks for one iteration first, then for as many as take a moment, and for
        fewer before an evaluation: another number must not mean another compilation.
        """
        ...

    def acting(self) -> Acting:
        """The parameters to act with, as NumPy arrays."""
        ...

    def close(self) -> None:
        """Release what is held besides memory."""
        ...
