# SPDX-License-Identifier: Apache-2.0
"""A process of a run as its supervisor sees it: started, listened to, ended.

All of it belongs to the supervisor's one thread, which waits for none of them: messages are taken
as far as they have arrived.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.collect.channel import JOB, Message, frame
from headrace.collect.worker_pool import ONE_THREAD, interrupt_held_back, pickled
from headrace.runtime.child import Work

_PROGRAM = (
    "import sys; descriptors, title, sys.path[:] = map(int, sys.argv[1:4]), sys.argv[4], "
    "sys.argv[5:]; del sys.argv[1:]; from headrace.runtime.child import main; "
    "main(*descriptors, title)"
)
_HEADER = struct.Struct("=cQ")


def _limits(threads: int | None) -> dict[str, str]:
    """What says so in the environment: to BLAS and OpenMP, and to XLA."""
    if threads is None:
        return {}
    return dict.fromkeys((*ONE_THREAD, "PJRT_NPROC"), str(threads))


class Process:
    """One fresh interpreter, that runs nothing of the main script."""

    def __init__(
        self,
        title: str,
        work: Work,
        memory: int,
        log: Path,
        *,
        threads: int | None,
        on: set[int] | None = None,
        nice: int = 0,
    ):
        """`memory` is the descriptor that it inherits; what it prints is appended to `log`.

        `threads` is how many its libraries may use, and `on` the processors that it may run on;
        None: as many as they like, and all of ours.
        """
        ours, theirs = socket.socketpair()
        theirs_alive, self._lifeline = os.pipe()
        inherited = (theirs.fileno(), memory, theirs_alive)
        path = [entry for entry in sys.path if isinstance(entry, str)]
        self.started = time.monotonic()
        try:
            with log.open("ab") as file, interrupt_held_back():
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, *map(str, inherited), title, *path],
                    pass_fds=inherited,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env=os.environ | _limits(threads),
                )
        except BaseException:
            ours.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(theirs_alive)
        self._end = ours
        self._arrived = bytearray()
        if on is not None:
            os.sched_setaffinity(self.pid, on)
        if nice:
            os.setpriority(os.PRIO_PROCESS, self.pid, nice)
        self.send(JOB, pickled(work))

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def send(self, kind: bytes, payload: Any = None) -> None:
        """A message; one to a process that has ended is lost, which is seen soon enough."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if self._end.fileno() >= 0:
                self._end.sendall(frame(kind, payload))

    def messages(self) -> Iterator[Message]:
        """Those that have arrived; none once it is closed."""
        while self._end.fileno() >= 0:
            try:
                part = self._end.recv(1 << 20, socket.MSG_DONTWAIT)
            except (BlockingIOError, ConnectionResetError):
                break
            if not part:
                break
            self._arrived += part
        while len(self._arrived) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._arrived)
            end = _HEADER.size + size
            if len(self._arrived) < end:
                return
            body = bytes(self._arrived[_HEADER.size : end])
            del self._arrived[:end]
            yield Message(kind, pickle.loads(body) if body else None)

    def ending(self) -> str | None:
        """How it has ended, in words; None where it has not."""
        code = self._process.poll()
        if code is None:
            return None
        if code >= 0:
            return f"ended with exit code {code}"
        names = {known.value: known.name for known in signal.Signals}
        return f"killed by {names.get(-code, f'signal {-code}')}"

    def kill(self) -> None:
        """End it now, and wait until it has. What it told can still be read, until `close`."""
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within this time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Release what the supervisor holds of it, once it has ended. May be called again.

        A number that is closed twice may by then be another file's: whatever interrupts this, it
        is closed once.
        """
        self._end.close()
        lifeline, self._lifeline = self._lifeline, -1
        if lifeline >= 0:
            os.close(lifeline)
