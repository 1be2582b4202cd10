# SPDX-License-Identifier: Apache-2.0
"""The other side of `process.Process`: what every process of a run does around its work.

It ends with the supervisor, whatever it is doing: the kernel kills it when its parent ends, and
again, where it was too early for that, when the parent's end of the lifeline closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from headrace.collect.channel import FAILED, Channel, Message, frame
from headrace.collect.worker import end_with_parent, explain
from headrace.errors import HeadraceError
from headrace.runtime.shared import SharedMemory

SAVE, SAVED, STOP, EPISODES, EVALUATED, LEARNT, SAY = (bytes([code]) for code in b"vVsaelt")
"""Kinds of messages: orders to the learner, and what processes have to tell."""

_PR_SET_PDEATHSIG = 1


@dataclass
class Wire:
    """The channel to the supervisor, for one thread."""

    channel: Channel
    end: socket.socket
    _waiting: list[Message] = field(default_factory=list)

    def tell(self, kind: bytes, payload: Any = None) -> None:
        """Send."""
        self.channel.send(frame(kind, payload))

    def order(self) -> Message | None:
        """The next order, if there is one already."""
        try:
            if not self.end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                return Message(STOP, None)
        except BlockingIOError:
            return None
        return self.channel.receive()


Work = Callable[[SharedMemory, Wire], None]


def main(end: int, memory: int, lifeline: int, title: str) -> NoReturn:
    """Do the work that is the first message. The numbers are inherited file descriptors.

    The process ends with it: taking JAX apart would take a quarter of a second, which the
    supervisor would have to wait.
    """
    failed = _work(end, memory, lifeline, title)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(failed)


def _work(end: int, memory: int, lifeline: int, title: str) -> bool:
    """Whether it failed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for descriptor in (end, memory, lifeline):
        os.set_inheritable(descriptor, False)
    end_with_the_supervisor(lifeline)
    _name(title)
    theirs = socket.socket(fileno=end)
    line = Wire(Channel(theirs), theirs)
    with contextlib.suppress(ConnectionError):
        first = line.channel.receive()
        if first is None:
            return False
        try:
            work: Work = pickle.loads(first.payload)
            work(SharedMemory(memory), line)
        except BaseException as error:
            traceback.print_exc()
            ours = isinstance(error, HeadraceError)
            line.tell(FAILED, (ours, explain(error)))
            return True
    return False


def end_with_the_supervisor(lifeline: int) -> None:
    """By both means that there are."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    end_with_parent(lifeline)


def _name(title: str) -> None:
    import setproctitle

    setproctitle.setproctitle(title)
