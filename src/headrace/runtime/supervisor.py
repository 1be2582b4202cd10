# SPDX-License-Identifier: Apache-2.0
"""The supervisor: it starts the processes of a run, watches them, keeps its books, and ends it.

It does no work of theirs: some times a second it takes what they have to tell, moves what is shown
and written, and decides whether the run is at its end. It never waits for a process, but for the
learner's last checkpoint.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting
from headrace.runtime import counters
from headrace.runtime.books import Books
from headrace.runtime.child import EPISODES, EVALUATED, LEARNT, SAVE, SAVED, SAY, STOP
from headrace.runtime.crew import Crew, Member
from headrace.runtime.evaluator import Evaluator
from headrace.runtime.learner import Learner
from headrace.runtime.machine import Usage, divided
from headrace.runtime.plan import Plan, open_channels
from headrace.runtime.sampler import Sampler
from headrace.runtime.shared import SharedMemory
from headrace.runtime.status import RunState, StatusWriter
from headrace.runtime.weights import FlatTree
from headrace.train.watch import Ending, Run

_PERIOD_S = 0.03
_SHOWN_EVERY_S = 1.0
_LAST_S = 30.0
"""How long the last evaluation may take."""
_SAVING_S = 60.0
"""How long the last checkpoint may take."""


class Supervisor:
    """Of one run. `acting` is what samplers begin with; `checkpoint` what the learner does."""

    def __init__(
        self,
        plan: Plan,
        acting: Acting,
        books: Books,
        stop_asked: Callable[[], bool],
        checkpoint: Path | None = None,
    ):
        self._plan, self._books, self._stop_asked = plan, books, stop_asked
        self._memory = SharedMemory()
        try:
            self.channels = open_channels(self._memory, plan)
        except BaseException:
            self._memory.close()
            raise
        self.channels.weights.publish(FlatTree(acting).vector)
        self._checkpoint = checkpoint
        self._status = StatusWriter(plan.folder)
        self._usage = Usage()
        self._shown_at = 0.0
        self._saved_at = time.monotonic()
        self._saving = False
        self._saved: deque[str] = deque()
        settings = plan.settings
        self.crew = Crew(
            plan.folder.name,
            plan.folder,
            self._memory.descriptor,
            silence_limit=settings.silence_limit,
            failures_in_a_row=settings.failures_in_a_row,
            after_death=self._free,
            say=books.say,
        )

    def run(self) -> Run:
        """To the end. A second Ctrl-C comes through, and ends all at once."""
        state: RunState = "failed"
        try:
            self._start()
            ending = self._supervise()
            self._show("stopping", now=True)
            self._save_now()
            if ending in ("total-steps", "time-limit"):
                self._evaluate_last()
            self._keep_a_policy()
            self.channels.counters.orders.set(counters.STOP, 1)
            self.crew.stop()
            for member, message in self.crew.messages():
                self._take(member, message)
            state = "finished"
            return self._books.end(ending)
        finally:
            self.crew.close()
            self._show(state, now=True)
            self._memory.close()

    def _start(self) -> None:
        plan, counted = self._plan, self.channels.counters
        before = self._books.before
        _, samplers = divided(plan.settings.learner_threads)
        learner = Learner(plan, self._checkpoint, (before.updates, before.update_frames))
        self.crew.start(
            Member(
                "learner",
                0,
                lambda _: learner,
                counted.learner,
                threads=plan.settings.learner_threads,
                vital=True,
            )
        )
        for index in range(plan.samplers):
            self.crew.start(
                Member(
                    "sampler",
                    index,
                    lambda life, index=index: Sampler(plan, index, self._books.lives + life),
                    counted.samplers[index],
                    on=samplers,
                )
            )
        if plan.settings.evaluator:
            self.crew.start(
                Member(
                    "evaluator",
                    0,
                    lambda _: Evaluator(plan, before.env_steps, self._books.best_mean),
                    counted.evaluator,
                )
            )
        if plan.settings.view:
            from headrace.runtime.watching import viewer  # the page's server is not for all runs

            self.crew.start(Member("viewer", 0, viewer(plan), None, nice=5))

    def _supervise(self) -> Ending:
        while True:
            for member, message in self.crew.messages():
                self._take(member, message)
            self.crew.look_after()
            self._count()
            self._show("running")
            ending = self._books.ending(self._stop_asked())
            if ending is not None:
                return ending
            if time.monotonic() - self._saved_at >= self._plan.settings.checkpoint_every:
                self._save()
            time.sleep(_PERIOD_S)

    # ---- what is told ----

    def _take(self, member: Member, message: Any) -> None:
        payload = message.payload
        if message.kind == EPISODES:
            self._books.episodes(np.array(payload, np.float32))
        elif message.kind == EVALUATED:
            self._count()
            self._books.evaluated(**payload)
        elif message.kind == LEARNT:
            self._books.learnt(payload)
        elif message.kind == SAVED:
            self._saving = False
            self._saved.append(payload)
            self._books.event(f"checkpoint {Path(payload).name}")
        elif message.kind == SAY:
            self._books.event(payload)

    def _count(self) -> None:
        learner = self.channels.counters.learner
        self._books.count(
            self.channels.counters.sampled(),
            learner.get(counters.UPDATES),
            learner.get(counters.FRAMES),
            self.channels.counters.evaluator.get(counters.STEPS),
        )

    def _show(self, state: RunState, *, now: bool = False) -> None:
        """In the run folder, and on the terminal."""
        if not now and time.monotonic() - self._shown_at < _SHOWN_EVERY_S:
            return
        self._shown_at = time.monotonic()
        if state == "running":
            self._books.tell()
        if state == "running" and not self.channels.counters.learner.get(counters.UPDATES):
            state = "starting"
        status = self._books.status(state, self._plan, self.channels, self.crew, self._usage)
        self._status.write(status, keep=now)

    # ---- checkpoints ----

    def _save(self) -> None:
        """Order one, unless one is under way."""
        self._saved_at = time.monotonic()
        learner = self.crew.member("learner")
        if self._saving or learner is None or learner.process is None:
            return
        if not self.channels.counters.learner.get(counters.UPDATES):
            return
        self._saving = True
        learner.process.send(SAVE, self._books.meta())

    def _save_now(self) -> None:
        """The last one: wait for it."""
        deadline = time.monotonic() + _SAVING_S
        for again in range(2):  # one that is under way is of before
            if again and self._saving:
                raise HeadraceError(f"the last checkpoint was not written within {_SAVING_S:.0f} s")
            waited = self._saving
            if not waited:
                self._save()
            while self._saving and time.monotonic() < deadline:
                for member, message in self.crew.messages():
                    self._take(member, message)
                self.crew.look_after()
                time.sleep(_PERIOD_S / 3)
            if not waited:
                return

    # ---- the end ----

    def _evaluate_last(self) -> None:
        """What was learnt in the end, as in every run; the learner's work is done by then."""
        learner, evaluator = self.crew.member("learner"), self.crew.member("evaluator")
        updates = self.channels.counters.learner.get(counters.UPDATES)
        if evaluator is None or learner is None or learner.process is None or not updates:
            return
        learner.process.send(STOP)
        learner.process.wait(_LAST_S)
        self.channels.counters.orders.set(counters.LAST, 1)
        deadline = time.monotonic() + _LAST_S
        newest = self.channels.weights.version
        while self._books.evaluated_version != newest and time.monotonic() < deadline:
            for member, message in self.crew.messages():
                self._take(member, message)
            if evaluator.process is None or evaluator.process.ending() is not None:
                return
            time.sleep(_PERIOD_S / 3)

    def _keep_a_policy(self) -> None:
        """The newest, where none was evaluated."""
        if self._books.best_mean is None:
            weights = self.channels.weights.reader()
            weights.refresh()
            self._books.save_policy(self._plan.algorithm(), weights.params)

    def _free(self, member: Member) -> None:
        """What a member that has ended left half written."""
        if member.role == "sampler" and self.channels.ring is not None:
            freed = self.channels.ring.repair(member.index)
            if freed:
                self._books.event(
                    f"{freed} row that {member.label} left half written is free again"
                )
