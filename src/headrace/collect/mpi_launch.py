# SPDX-License-Identifier: Apache-2.0
"""Ranks that an ordinary process starts for itself, by mpiexec, and ends.

The owner talks to rank 0 over a socket; array data is in shared memory that all ranks inherit. A
rank that fails or dies is a `WorkerDiedError`, and ends the others: mpiexec kills them, and what it
misses dies with the owner's end of a pipe, as it does when the owner is killed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import time
import weakref
from typing import Any

from headrace.collect.channel import FAILED, JOB, Channel, frame
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.worker_pool import interrupt_held_back, pickled
from headrace.errors import ExtraMissingError, HeadraceError, WorkerDiedError

COLLECT, SAVE, RESTORE = b"c", b"v", b"o"
"""Messages to rank 0, besides the job."""

_LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_SILENCE_S = 1.0
_GRACE_S = 2.0
"""How long ranks have to end by themselves before they are killed."""


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
        mpiexec = _find_mpiexec()
        payload = pickled(job)
        self._labels = labels
        self._pids: list[int] = []
        self._output = SharedArrays()
        ours, theirs = socket.socketpair()
        # The kernel's time-out: Python's own costs a system call more for each message.
        ours.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(_SILENCE_S), 0)
        )
        pipes = [os.pipe() for _ in labels]
        inherited = [theirs.fileno(), memory.descriptor, *(read for read, _ in pipes)]
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
                lifelines = [write for _, write in pipes]
                self._channel = Channel(ours, self._check)
                self.close = weakref.finalize(
                    self, _end, self._process, ours, memory, lifelines, self._output, os.getpid()
                )
                """End all ranks, and give back what they had; again and again if need be."""
        finally:
            theirs.close()
            for read, _ in pipes:
                os.close(read)
        try:
            self._pids = self.tell(JOB, payload)
        except BaseException:
            self.close()
            raise

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

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise self._death()

    def _death(self) -> WorkerDiedError:
        last = self._channel.receive_left()
        if last is not None and last.kind == FAILED:
            return WorkerDiedError(last.payload)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        text = _read(self._output.descriptor)
        rank, status = _first_death(text, self._pids, len(self._labels))
        if rank is None:
            lines = [line for line in text.splitlines() if line.strip(" =")]
            said = f": {' '.join(lines[-1].split())}" if lines else ""
            return WorkerDiedError(
                f"the {len(self._labels)} ranks ended, mpiexec with exit code "
                f"{self._process.returncode}{said}"
            )
        code = os.waitstatus_to_exitcode(status)
        names = {known.value: known.name for known in signal.Signals}
        name = f" ({names.get(-code, 'a signal')})" if code < 0 else ""
        hint = "; was there too little memory?" if -code == signal.SIGKILL else ""
        return WorkerDiedError(f"{self._labels[rank]} died with exit code {code}{name}{hint}")


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
    worker = [sys.executable, "-P", "-m", "headrace.collect.mpi_worker"]
    return [mpiexec, *here, *worker, *map(str, descriptors)]


def _first_death(text: str, pids: list[int], ranks: int) -> tuple[int | None, int]:
    """From what mpiexec printed: which rank ended first, and its wait status.

    It kills the others; some of them it lists as killed, too, and may even name in the first place.
    """
    named = re.search(r"=\s+PID (\d+) RUNNING", text)
    codes = re.search(r"Exit codes: \[[^\]]*\] ([\d,]+)", text)
    statuses = [int(code) for code in codes.group(1).split(",")] if codes else []
    if len(statuses) != ranks:
        statuses = [0] * ranks
    for rank, status in enumerate(statuses):
        if status not in (0, signal.SIGKILL):
            return rank, status
    if named and int(named.group(1)) in pids:
        return pids.index(int(named.group(1))), signal.SIGKILL
    return next((rank for rank in range(ranks) if statuses[rank]), None), signal.SIGKILL


def _read(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _end(
    process: subprocess.Popen[bytes],
    channel: socket.socket,
    memory: SharedArrays,
    lifelines: list[int],
    output: SharedArrays,
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
        for lifeline in lifelines:
            os.close(lifeline)  # kills the rank that has the other end
        _wait_or_kill(process)
        memory.close()
        output.close()


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    """Without its ranks, mpiexec ends by itself, and with it what it started."""
    deadline = time.monotonic() + _GRACE_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
