# SPDX-License-Identifier: Apache-2.0
"""The sampler's process: environments, a policy on NumPy, and a writer. It needs no JAX.

Over and over: copy the newest weights if there are newer ones, take some steps of every
environment, hand over what happened. It waits for nobody, but where it is told to: for its turn in
lock-step or at a ratio of updates to steps, or for the time where a rate is set; on-policy, for a
slot to write into.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from headrace.collect.base import Collector, Request
from headrace.collect.batch import Batch
from headrace.collect.rungs import rung_class
from headrace.envs.array.namespace import namespace
from headrace.learn.transitions import transitions
from headrace.policy import Policy
from headrace.runtime import counters
from headrace.runtime.child import EPISODES, Wire
from headrace.runtime.plan import Channels, Plan, open_channels
from headrace.runtime.rollout_slots import Slot
from headrace.runtime.shared import SharedMemory
from headrace.train.experience import rollout_of

RUNGS = {"gym": "python", "array": "numpy", "native": "native"}
"""What steps environments of a definition, in one thread of one process."""
_TOLD_EVERY_S = 0.2
_NAP_S = 2e-4


@dataclass(frozen=True)
class Sampler:
    """The work of sampler `index`; `life` counts how often it was started before."""

    plan: Plan
    index: int
    life: int = 0

    def __call__(self, memory: SharedMemory, line: Wire) -> None:
        """Until told to stop."""
        channels = open_channels(memory, self.plan)
        ours = channels.counters.samplers[self.index]
        ours.beat()
        policy = beating(self.plan.algorithm().policy("numpy"), ours)
        rung = rung_class(RUNGS[self.plan.config.definition])
        request = Request(
            self.plan.spec,
            self.plan.envs,
            self.plan.steps,
            policy,
            life_seed(self.plan.settings.seed, self.index, self.life),
            first_env=self.index * self.plan.envs,
        )
        with rung(request) as collector:
            _Loop(self.plan, self.index, channels, ours, collector, line).run()


class _Loop:
    """What a sampler does again and again."""

    def __init__(
        self,
        plan: Plan,
        index: int,
        channels: Channels,
        ours: counters.Line,
        collector: Collector,
        line: Wire,
    ):
        self._plan, self._index, self._channels = plan, index, channels
        self._ours, self._collector, self._line = ours, collector, line
        self._orders = channels.counters.orders
        self._weights = channels.weights.reader()
        self._steps = plan.envs * plan.steps
        self._gated = plan.ratio is not None or plan.settings.lock_step
        rate = plan.settings.sampling_rate
        self._interval = None if rate is None else self._steps * plan.samplers / rate
        self._due = time.monotonic()
        self._returns: list[float] = []
        self._told_at = 0.0
        self._hand_over: Callable[[Batch], None]
        if channels.ring is not None:
            self._rows = {field.name: field.rows(self._steps) for field in plan.fields}
            self._writer = channels.ring.writer(index, self._rows)
            self._hand_over = self._write_rows
        else:
            self._slot: Slot | None = None
            self._number = ours.get(counters.WORK)
            self._hand_over = self._write_slot

    def run(self) -> None:
        """Until the order to stop."""
        while self._my_turn():
            if self._weights.refresh():
                self._ours.set(counters.VERSION, self._weights.version)
            batch = self._collector.collect(self._weights.params)
            self._hand_over(batch)
            self._ours.add(counters.STEPS, self._steps)
            self._tell(batch)
        self._tell_now()

    def _my_turn(self) -> bool:
        """Wait until it is; False where it never will be."""
        while not self._orders.get(counters.STOP):
            self._ours.beat()
            if self._may_begin():
                return True
            time.sleep(_NAP_S)
        return False

    def _may_begin(self) -> bool:
        if self._gated:
            allowance = self._channels.counters.learner.get(counters.ALLOWANCE)
            if self._channels.counters.sampled() >= allowance:
                return False
        if self._interval is not None:
            now = time.monotonic()
            if now < self._due:
                return False
            self._due = max(self._due + self._interval, now - self._interval)
        if self._channels.slots is not None:
            self._slot = self._channels.slots.empty(self._index)
            return self._slot is not None
        return True

    def _write_rows(self, batch: Batch) -> None:
        config = self._plan.config.algorithm
        experience = transitions(
            namespace("numpy"), rollout_of(batch), config.discount, config.n_step
        )
        for name, rows in self._rows.items():
            rows[...] = getattr(experience, name)
        self._writer.write(self._steps)

    def _write_slot(self, batch: Batch) -> None:
        assert self._slot is not None
        rollout = rollout_of(batch)
        for name, rows in self._slot.arrays.items():
            kind, _, extra = name.partition("/")
            rows[...] = rollout.extras[extra] if extra else getattr(rollout, kind)
        self._number += 1
        self._ours.add(counters.WORK, 1)
        self._slot.hand_over(self._weights.version, self._number)

    def _tell(self, batch: Batch) -> None:
        """The returns of episodes, a few times a second."""
        returns, _ = batch.episodes()
        if len(returns):
            self._ours.add(counters.EPISODES, len(returns))
            self._returns += returns.tolist()
        now = time.monotonic()
        if self._returns and now - self._told_at > _TOLD_EVERY_S:
            self._told_at = now
            self._tell_now()

    def _tell_now(self) -> None:
        if self._returns:
            self._line.tell(EPISODES, self._returns)
            self._returns = []


def beating(policy: Policy, ours: counters.Line) -> Policy:
    """The policy, whose every call is a sign of life."""
    apply = policy.apply

    def with_a_beat(params, obs, mask, key):
        ours.beat()
        return apply(params, obs, mask, key)

    return replace(policy, apply=with_a_beat)


def life_seed(seed: int, index: int, life: int) -> int:
    """The run's own at first; for one that was restarted, a seed that nothing had before."""
    if life == 0:
        return seed
    return int(np.random.SeedSequence([seed, index, life]).generate_state(1, np.uint64)[0])
