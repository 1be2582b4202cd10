# SPDX-License-Identifier: Apache-2.0
"""The learner's process: one dispatch after another from its feed, and the weights to all.

It is the only one that may need JAX. Between two dispatches it publishes the new parameters, moves
its counters, and does what the supervisor has ordered: to save, to stop.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.runtime import counters
from headrace.runtime.child import LEARNT, SAVE, SAVED, STOP, Wire
from headrace.runtime.machine import divided, keep_to
from headrace.runtime.plan import Channels, Plan, open_channels
from headrace.runtime.shared import SharedMemory
from headrace.train import checkpoint, trees
from headrace.train.checkpoint import CHECKPOINTS, Checkpoints

_TOLD_EVERY_S = 0.5
_WAIT_S = 0.05
"""How long to wait for experience before looking whether there are orders."""
_OWNER = 0xFFFF
"""Who writes what a checkpoint kept into the ring: no sampler."""


@dataclass(frozen=True)
class Learner:
    """The work; continued from `checkpoint`, if there is one."""

    plan: Plan
    checkpoint: Path | None = None
    before: tuple[int, int] = (0, 0)
    """Updates made, and transitions learnt from, before this process."""

    def __call__(self, memory: SharedMemory, line: Wire) -> None:
        """Until told to stop."""
        channels = open_channels(memory, self.plan)
        _Loop(self, channels, line).run()


class _Loop:
    """What the learner does again and again."""

    def __init__(self, work: Learner, channels: Channels, line: Wire):
        from headrace.runtime.feed import RolloutFeed, make_feed
        from headrace.runtime.updates import updates_of

        self._plan, self._line, self._channels = work.plan, line, channels
        self._settings = work.plan.settings
        self._algorithm = work.plan.algorithm()
        self._ours = channels.counters.learner
        self._before = work.before
        self._state: Any = self._algorithm.init(self._settings.seed)
        if work.checkpoint is not None:
            self._continue_from(work.checkpoint)
        self._updates = updates_of(self._algorithm, work.plan.config)
        self._feed = make_feed(work.plan, channels)
        self._rollouts = self._feed if isinstance(self._feed, RolloutFeed) else None
        self._checkpoints = Checkpoints(
            work.plan.folder / CHECKPOINTS, self._settings.keep_checkpoints
        )
        self._done = 0
        """Dispatches."""
        self._told_at = time.monotonic()

    def run(self) -> None:
        """Until the order to stop."""
        self._ours.set(counters.ALLOWANCE, self._feed.allowance(0))
        self._feed.start()
        try:
            while self._obey():
                self._ours.beat()
                self._learn()
        finally:
            self._feed.stop()

    def _learn(self) -> None:
        from headrace.runtime import feed

        experience = self._feed.next(_WAIT_S)
        if experience is None:
            return
        newest = self._channels.weights.version
        if feed.too_old(experience, newest, self._settings.staleness):
            self._feed.give_back(experience)
            assert self._rollouts is not None
            self._rollouts.dropped += self._plan.samplers
            return
        feed.note_staleness(self._ours, experience, newest)
        result = self._updates(self._state, experience.arrays)
        vector = np.asarray(result.vector)  # waits until it is there
        self._state = result.state
        self._feed.give_back(experience)
        self._require_finite(vector)
        self._channels.weights.publish(vector)
        if self._done == 0:  # compiled, on all processors
            self._keep_to_its_own()
        self._done += 1
        self._ours.add(counters.UPDATES, self._made)
        self._ours.add(counters.FRAMES, self._frames)
        self._ours.set(counters.ALLOWANCE, self._feed.allowance(self._done))
        if self._rollouts is not None:
            self._ours.set(counters.DROPPED, self._rollouts.dropped)
        self._tell(result.metrics)

    def _keep_to_its_own(self) -> None:
        own, _ = divided(self._settings.learner_threads)
        if own is not None:
            keep_to(own)

    @property
    def _made(self) -> int:
        """Updates in a dispatch."""
        if self._plan.on_policy:
            return getattr(self._algorithm, "steps_per_update", 1)
        return self._plan.updates

    @property
    def _frames(self) -> int:
        """Transitions that a dispatch learns from, each time that it does."""
        if self._plan.on_policy:
            return self._plan.iteration * self._algorithm.config.epochs
        return self._plan.updates * self._plan.batch_size

    def _tell(self, metrics: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._told_at < _TOLD_EVERY_S and self._done > 1:
            return
        from headrace.runtime.updates import as_numbers

        self._told_at = now
        numbers = as_numbers(metrics)
        for name, value in numbers.items():
            if name.startswith("loss") and not math.isfinite(value):
                raise _not_finite(f"{name} is {value}")
        self._line.tell(LEARNT, numbers)

    def _require_finite(self, vector: np.ndarray) -> None:
        if not np.isfinite(vector).all():
            raise _not_finite("a parameter is not finite")

    # ---- orders ----

    def _obey(self) -> bool:
        """Do what was ordered; False for the order to stop."""
        while (order := self._line.order()) is not None:
            if order.kind == STOP:
                return False
            if order.kind == SAVE:
                self._line.tell(SAVED, str(self._save(order.payload)))
        return True

    def _save(self, meta: dict[str, Any]) -> Path:
        """A checkpoint of now; `meta` is what the supervisor adds."""
        tree = {"learner": trees.mapped(np.asarray, self._state)}
        ring = self._channels.ring
        if ring is not None and self._settings.save_replay:
            tree["replay"] = ring.rows()
        counted = {
            "updates": self._before[0] + self._ours.get(counters.UPDATES),
            "update_frames": self._before[1] + self._ours.get(counters.FRAMES),
        }
        return self._checkpoints.save(tree, meta | counted)

    def _continue_from(self, path: Path) -> None:
        loaded = checkpoint.read(path)
        parts: dict[str, dict[str, np.ndarray]] = {"learner": {}, "replay": {}}
        for name, array in loaded.arrays.items():
            kind, _, rest = name.partition("/")
            parts[kind][rest] = array
        try:
            self._state = trees.filled(self._state, parts["learner"])
        except HeadraceError as error:
            raise HeadraceError(f"{path} does not belong to this run: {error}") from error
        if parts["replay"] and self._channels.ring is not None:
            self._channels.ring.restore(parts["replay"], _OWNER)


def _not_finite(what: str) -> HeadraceError:
    return HeadraceError(
        f"{what}: learning broke down. Look at the rewards for what is not finite or very large, "
        "and try a smaller learning rate; headrace resume continues from the last checkpoint"
    )
