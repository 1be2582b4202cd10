# SPDX-License-Identifier: Apache-2.0
"""The processes of a run: started, watched, restarted, ended.

A sampler, the evaluator or the viewer that dies, raises or falls silent is started anew, with a
count and a reason; what it left half written is freed first. One that fails so often in a row that
it never lasts stops the run, and so does the learner's end. All of this is the supervisor's thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.collect.channel import FAILED, Message
from headrace.errors import HeadraceError, WorkerDiedError
from headrace.runtime import counters
from headrace.runtime.child import STOP, Work
from headrace.runtime.machine import Usage
from headrace.runtime.process import Process
from headrace.runtime.status import ProcessState, ProcessStatus

_LASTED_S = 10.0
"""Who has worked for so long has not failed in a row."""
_GRACE_S = 2.0
"""How long processes have to end by themselves."""
FAILURES = "failures"
LOGS = "logs"


@dataclass
class Member:
    """A place in the crew, and whoever fills it now."""

    role: str
    index: int
    work: Callable[[int], Work]
    """For a life: 0 the first time."""
    line: counters.Line | None
    """Where it beats; None where it does not."""
    threads: int | None = 1
    """That its libraries may use; None: as many as they like."""
    on: set[int] | None = None
    """The processors that it may run on; None: all."""
    nice: int = 0
    vital: bool = False
    """Whether the run ends with it."""
    process: Process | None = None
    lives: int = 0
    in_a_row: int = 0
    reason: str = ""
    failure: str = ""
    """What it said, if it said anything."""
    blames_user: bool = False

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.role} {self.index}" if self.role == "sampler" else self.role

    def status(self, usage: Usage) -> ProcessStatus:
        """As whoever watches is told."""
        pid = 0 if self.process is None else self.process.pid
        cpu, memory = usage.of(pid) if pid else (0.0, 0)
        state: ProcessState = "running"
        if self.process is None:
            state = "ended"
        elif self.line is not None and self.line.silence() > 5.0:
            state = "silent"
        elif time.monotonic() - self.process.started < 0.5:
            state = "starting"
        return ProcessStatus(
            self.role, self.index, pid, state, max(0, self.lives - 1), self.reason, cpu, memory
        )


class Crew:
    """All of them. `close` leaves nobody behind."""

    def __init__(
        self,
        run: str,
        folder: Path,
        memory: int,
        *,
        silence_limit: float,
        failures_in_a_row: int,
        after_death: Callable[[Member], None],
        say: Callable[[str], None],
    ):
        """`after_death` frees what a member left, once it has certainly ended."""
        self._run, self._folder, self._memory = run, folder, memory
        self._silence_limit, self._most = silence_limit, failures_in_a_row
        self._after_death, self._say = after_death, say
        self.members: list[Member] = []
        self.restarts = 0
        self._last_words: list[tuple[Member, Message]] = []
        """Of those that have ended: told after `messages` had looked."""
        (folder / LOGS).mkdir(exist_ok=True)

    def start(self, member: Member) -> None:
        """Add it, and start it."""
        self.members.append(member)
        self._begin(member)

    def _begin(self, member: Member) -> None:
        if member.line is not None:
            member.line.beat()  # it is given as long to start as to do anything
        member.failure, member.blames_user = "", False
        log = self._folder / LOGS / f"{member.label.replace(' ', '-')}.log"
        member.process = Process(
            f"headrace {member.label} {self._run}",
            member.work(member.lives),
            self._memory,
            log,
            threads=member.threads,
            on=member.on,
            nice=member.nice,
        )
        member.lives += 1

    def messages(self) -> Iterator[tuple[Member, Message]]:
        """What has arrived from all."""
        while self._last_words:
            yield self._last_words.pop(0)
        for member in self.members:
            if member.process is not None:
                yield from self._told(member, member.process)

    @staticmethod
    def _told(member: Member, process: Process) -> Iterator[tuple[Member, Message]]:
        for message in process.messages():
            if message.kind == FAILED:
                member.blames_user, member.failure = message.payload
            else:
                yield member, message

    def look_after(self) -> None:
        """Restart whoever needs it; raise where the run cannot go on. After `messages`."""
        for member in self.members:
            process = member.process
            if process is None:
                continue
            ending = process.ending()
            if ending is None and member.line is not None and not member.vital:
                silence = member.line.silence()
                if silence > self._silence_limit:
                    process.kill()
                    ending = f"silent for {silence:.0f} s: taken for hung, and killed"
            if ending is not None:
                self._last_words += self._told(member, process)
                process.close()
                self._ended(member, process, ending)

    def _ended(self, member: Member, process: Process, ending: str) -> None:
        member.process = None
        self._after_death(member)
        failure = member.failure
        member.reason = _in_short(failure) or ending
        if member.vital or member.blames_user:
            if member.blames_user:
                raise HeadraceError(failure)
            raise WorkerDiedError(
                f"the {member.label} {ending}{_said(failure)}; headrace resume {self._folder} "
                "continues from the last checkpoint"
            )
        lasted = time.monotonic() - process.started > _LASTED_S
        member.in_a_row = 1 if lasted else member.in_a_row + 1
        self.restarts += 1
        if failure:
            self._keep(member, failure)
        if member.in_a_row >= self._most:
            raise WorkerDiedError(
                f"{member.label} failed {member.in_a_row} times in a row; the last time it "
                f"{ending}{_said(failure)}"
            )
        self._say(f"{member.label} {ending}, restarted: {member.reason}")
        self._begin(member)

    def _keep(self, member: Member, failure: str) -> None:
        folder = self._folder / FAILURES
        folder.mkdir(exist_ok=True)
        name = f"{member.label.replace(' ', '-')}-{member.lives}.txt"
        with contextlib.suppress(OSError):
            (folder / name).write_text(failure + "\n", "utf-8")

    def member(self, role: str) -> Member | None:
        """The first of this role."""
        return next((member for member in self.members if member.role == role), None)

    def stop(self) -> None:
        """Let all end by themselves, who have been told to by the orders' word as well."""
        deadline = time.monotonic() + _GRACE_S
        for member in self.members:
            if member.process is not None:
                member.process.send(STOP)
        for member in self.members:
            if member.process is not None:
                member.process.wait(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """End at once whoever is left."""
        for member in self.members:
            if member.process is not None:
                with contextlib.suppress(OSError):
                    member.process.kill()
                member.process.close()
                member.process = None


def _in_short(failure: str) -> str:
    """The line of a traceback that names the error: notes may follow it."""
    lines = [line for line in failure.splitlines() if line and not line.startswith((" ", "("))]
    return lines[-1] if lines else ""


def _said(failure: str) -> str:
    return f":\n{failure}\n" if failure else ""
