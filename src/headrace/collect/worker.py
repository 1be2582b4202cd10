# SPDX-License-Identifier: Apache-2.0
"""The other side of `WorkerPool`: what runs in a worker process.

A worker reads a job from its channel, then does what the messages on it say, one after another,
until the channel is closed. It ends with its parent whatever it is doing: the kernel sends SIGIO,
which is fatal, when the parent's end of the lifeline closes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from headrace.collect.channel import DONE, FAILED, READY, Channel, frame
from headrace.collect.shared_arrays import SharedArrays
from headrace.errors import HeadraceError


class Job(Protocol):
    """What a worker does."""

    @property
    def actions(self) -> Mapping[bytes, Callable[[Any], Any]]:
        """By kind of message: takes the payload, returns that of the answer."""
        ...

    @property
    def close(self) -> Callable[[], None]:
        """Releases what it holds."""
        ...

    def introduce(self) -> Any:
        """What the parent is told when all is ready."""
        ...


MakeJob = Callable[[SharedArrays], Job]


def main(end: int, memory: int, lifeline: int) -> None:
    """Work until the channel closes. The arguments are inherited file descriptors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for descriptor in (end, memory, lifeline):
        os.set_inheritable(descriptor, False)
    end_with_parent(lifeline)
    channel = Channel(socket.socket(fileno=end))
    with contextlib.ExitStack() as closing, contextlib.suppress(ConnectionError):
        try:
            _work(channel, memory, closing)
        except BaseException as error:
            channel.send(frame(FAILED, explain(error)))
            sys.exit(1)


def _work(channel: Channel, memory: int, closing: contextlib.ExitStack) -> None:
    first = channel.receive()
    if first is None:
        return
    make: MakeJob = pickle.loads(first.payload)
    job = make(SharedArrays(memory))
    closing.callback(job.close)
    channel.send(frame(READY, job.introduce()))
    actions, done = job.actions, frame(DONE)
    while (message := channel.receive()) is not None:
        answer = actions[message.kind](message.payload)
        channel.send(done if answer is None else frame(DONE, answer))


def end_with_parent(lifeline: int) -> None:
    """Die when the other end of this pipe, which nobody else reads, is closed."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    os.set_blocking(lifeline, False)
    with contextlib.suppress(BlockingIOError):
        if not os.read(lifeline, 1):  # it had ended before
            os._exit(1)


def explain(error: BaseException) -> str:
    """One line for our own errors; for others the traceback from where it leaves our files."""
    if isinstance(error, HeadraceError):
        return str(error)
    ours = str(Path(__file__).parents[1])
    inner = error.__traceback__
    while inner and inner.tb_frame.f_code.co_filename.startswith(ours):
        inner = inner.tb_next
    lines = traceback.format_exception(type(error), error, inner or error.__traceback__)
    return "".join(lines).rstrip()
