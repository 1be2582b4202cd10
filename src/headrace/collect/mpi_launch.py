# SPDX-License-Identifier: Apache-2.0
"""Ranks that an ordinary process starts for itself, by mpiexec, and ends.

The owner talks to rank 0 over a socket; array data is in shared memory that all ranks inherit. A
rank that fails or dies is a `WorkerDiedError`, and ends the others: mpiexec kills them, and what it
misses dies with the owner's end of a pipe, as it does when the owner is killed. Which of them died
first, mpiexec does not know; the kernel keeps their deaths in order for the owner.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import time
import weakref
from collections.abc import Iterable
from typing import Any

from headrace.collect.channel import FAILED, JOB, Channel, frame
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.worker_pool import interrupt_held_back, pickled
from headrace.errors import ExtraMissingError, HeadraceError, WorkerDiedError

COLLECT, SAVE, RESTORE = b"c", b"v", b"o"
"""Messages to rank 0, besides the job."""

_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_SILENCE_S = 0.25
"""How long to wait for an answer before looking whether all ranks are alive."""

_GRACE_S = 2.0
"""How long ranks have to end by themselves before they are killed."""

_PROGRAM = (
    "import os, sys; started = int(sys.argv.pop(1)); "
    "os.write(started, b'%s %d\\n' % (os.environb[b'PMI_RANK'], os.getpid())); os.close(started); "
    "from headrace.collect.mpi_worker import main; main(*map(int, sys.argv[1:]))"
)
"""What a rank does first is to say who it is."""


def in_mpi_program() -> bool:
    """Whether mpiexec started this process."""
    return any(name in os.environ for name in _LAUNCHERS)


def require_extra() -> None:
    """Raise unless mpi4py is there."""
    if importlib.util.find_spec("mpi4py") is None:
        raise ExtraMissingError("the mpi rung", "mpi")


def rank_name(rank: int, parts: list[tuple[int, int]], first_env: int) -> str:
    """What an error calls it."""
    first, last = (edge + first_env for edge in parts[rank])
    return f"rank {rank} of {len(parts)} (environments {first} to {last - 1})"


class Ranks:
    """`len(labels)` ranks, started together and ended together; `labels` name them in errors."""

    def __init__(self, memory: SharedArrays, job: Any, labels: list[str]):
        """`job` is what `mpi_worker` works on."""
        if not hasattr(os, "pidfd_open"):
            raise HeadraceError("the mpi rung starts its ranks on Linux only; here, use mpiexec")
        mpiexec = _find_mpiexec()
        payload = pickled(job)
        self._labels = labels
        self._deaths = select.epoll()
        self._ranks_of: dict[int, int] = {}
        """Ranks by the descriptors that tell of their deaths."""
        self._first_dead: int | None = None
        self._output = SharedArrays()
        """What mpiexec prints."""
        ours, theirs = _sockets()
        pipes = [os.pipe() for _ in labels]
        started, start = os.pipe()
        inherited = [start, theirs.fileno(), memory.descriptor, *(read for read, _ in pipes)]
        try:
            with interrupt_held_back():
                self._process = subprocess.Popen(
                    _command(mpiexec, len(labels), inherited),
                    pass_fds=inherited,
                    stdin=subprocess.DEVNULL,
                    stdout=self._output.descriptor,
                    stderr=self._output.descriptor,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,  # Ctrl-C is the owner's to answer
                )
                self._lifelines = [write for _, write in pipes]
                self._channel = Channel(ours, self._check)
                self.close = weakref.finalize(
                    self,
                    _end,
                    self._process,
                    ours,
                    memory,
                    self._lifelines,
                    self._ranks_of,
                    os.getpid(),
                )
                """End all ranks, and give back what they had; again and again if need be."""
        finally:
            theirs.close()
            for read in (start, *(read for read, _ in pipes)):
                os.close(read)
        try:
            with os.fdopen(started, "rb", buffering=0) as lines:
                self._meet(lines)
        except BaseException:
            self.close()
            raise
        self.tell(JOB, payload)

    def tell(self, kind: bytes, payload: Any = None) -> Any:
        """Send rank 0 a message; returns the answer."""
        if not self.close.alive:
            raise HeadraceError("the ranks have ended; make a new collector")
        try:
            try:
                self._channel.send(frame(kind, payload))
            except ConnectionError:
                raise self._death() from None
            message = self._channel.receive()
            if message is None:
                raise self._death()
            if message.kind == FAILED:
                raise WorkerDiedError(message.payload)
        except BaseException:
            self.close()
            raise
        return message.payload

    def _meet(self, lines: io.RawIOBase) -> None:
        """Wait until every rank has said who it is."""
        said = b""
        while said.count(b"\n") < len(self._labels):
            if not select.select([lines], [], [], _SILENCE_S)[0]:
                self._check()
                continue
            part = lines.read(4096)
            if not part:
                raise self._death()
            said += part
        for line in said.splitlines():
            rank, pid = map(int, line.split())
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self._first_dead = rank
                return
            self._ranks_of[descriptor] = rank
            self._deaths.register(descriptor, select.EPOLLIN)

    def _check(self) -> None:
        if self._process.poll() is not None or self._dead() is not None:
            raise self._death()

    def _dead(self) -> int | None:
        if self._first_dead is None and (ended := self._deaths.poll(0, 1)):
            self._first_dead = self._ranks_of[ended[0][0]]
        return self._first_dead

    def _death(self) -> WorkerDiedError:
        last = self._channel.receive_left()
        if last is not None and last.kind == FAILED:
            return WorkerDiedError(last.payload)
        rank = self._dead()
        _kill(self._lifelines)
        self.close()  # then mpiexec has said how they ended
        text = _read(self._output.descriptor)
        lines = [line for line in text.splitlines() if line.strip(" =")]
        if rank is None:
            said = f": {' '.join(lines[-1].split())}" if lines else ""
            return WorkerDiedError(
                f"the {len(self._labels)} ranks ended, mpiexec with exit code "
                f"{self._process.returncode}{said}"
            )
        return WorkerDiedError(f"{self._labels[rank]} died{_how(text, rank)}")


def _sockets() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    # The kernel's time-out: Python's own costs a system call more for each message.
    time_out = struct.pack("@ll", 0, int(_SILENCE_S * 1e6))
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_out)
    return ours, theirs


def _find_mpiexec() -> str:
    require_extra()
    # The wheel's own before any other: it must be of the library that mpi4py loads.
    beside = sysconfig.get_path("scripts")
    found = shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")
    if found is None:
        raise ExtraMissingError("the mpi rung finds no mpiexec, and", "mpi")
    return found


def _command(mpiexec: str, ranks: int, descriptors: list[int]) -> list[str]:
    here = ["-launcher", "fork", "-rmk", "user", "-print-all-exitcodes", "-n", str(ranks)]
    worker = [sys.executable, "-P", "-c", _PROGRAM, *map(str, descriptors)]
    return [mpiexec, *here, *worker]


def _read(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _how(text: str, rank: int) -> str:
    """Of what mpiexec printed, how this rank ended."""
    listed = re.search(r"Exit codes: \[[^\]]*\] ([\d,]+)", text)
    statuses = listed.group(1).split(",") if listed else []
    if rank >= len(statuses):
        return ""
    code = os.waitstatus_to_exitcode(int(statuses[rank]))
    if code >= 0:
        return f" with exit code {code}"
    name = {known.value: known.name for known in signal.Signals}.get(-code, "a signal")
    hint = "; was there too little memory?" if -code == signal.SIGKILL else ""
    return f" with exit code {code} ({name}){hint}"


def _end(
    process: subprocess.Popen[bytes],
    channel: socket.socket,
    memory: SharedArrays,
    lifelines: list[int],
    processes: Iterable[int],
    owner: int,
) -> None:
    if os.getpid() != owner:  # a fork of the owner's: the ranks are not its own
        return
    channel.close()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _kill(lifelines)
        _wait_or_kill(process)
        for descriptor in processes:
            os.close(descriptor)
        memory.close()


def _kill(lifelines: list[int]) -> None:
    """Each rank dies when nobody has the other end of its pipe."""
    while lifelines:
        os.close(lifelines.pop())


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    """Without its ranks, mpiexec ends by itself, and with it what it started."""
    deadline = time.monotonic() + _GRACE_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
