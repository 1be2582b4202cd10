# SPDX-License-Identifier: Apache-2.0
"""Worker processes of one owner: started together, and ended together.

The owner's thread sends messages and waits for the answers; each worker waits for a message, acts,
and answers. Array data is in shared memory, which one side writes while the other waits.

A worker that raises or dies is a `WorkerDiedError` within two seconds, and ends the others. Workers
end by themselves when the owner's process ends, however it ends. They are started as fresh
interpreters that run nothing of the main script; what is sent to them is pickled by value where it
is defined there.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import cloudpickle

from headrace.collect.channel import FAILED, JOB, Channel, frame
from headrace.collect.shared_arrays import SharedArrays
from headrace.errors import HeadraceError, WorkerDiedError

if TYPE_CHECKING:
    from headrace.collect.worker import MakeJob

_SILENCE_S = 1.0
"""How long to wait for an answer before looking whether all workers are alive."""

_GRACE_S = 1.0
"""How long workers have to close their environments before they are killed."""

_PROGRAM = (
    "import sys; descriptors, sys.path[:] = map(int, sys.argv[1:4]), sys.argv[4:]; "
    "del sys.argv[1:]; from headrace.collect.worker import main; main(*descriptors)"
)

ONE_THREAD = dict.fromkeys(
    (
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


def default_workers(num_envs: int) -> int:
    """One for each processor that this process may use, but no more than environments."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(num_envs, usable or 1)


def shares(num_envs: int, workers: int | None) -> list[tuple[int, int]]:
    """Contiguous ranges of environments, as (first, last + 1), one for each worker."""
    count = min(workers or default_workers(num_envs), num_envs)
    edges = [number * num_envs // count for number in range(count + 1)]
    return list(pairwise(edges))


@dataclass(frozen=True)
class _Worker:
    label: str
    process: subprocess.Popen[bytes]
    channel: Channel
    lifeline: int


class WorkerPool:
    """Workers with a job each; `labels` say in errors what a worker's part is."""

    def __init__(self, memory: SharedArrays, jobs: Sequence[MakeJob], labels: Sequence[str]):
        if os.name != "posix":
            raise HeadraceError("worker processes need Linux or macOS; use the python rung")
        payloads = [pickled(job) for job in jobs]
        self._workers: list[_Worker] = []
        self.close = weakref.finalize(self, _end, self._workers, memory, os.getpid())
        """End all workers, and give back what they had; again and again if need be."""
        try:
            check = partial(_check_alive, self._workers)  # holds no pool: it may be forgotten
            with interrupt_held_back():
                for number, label in enumerate(labels):
                    name = f"worker {number + 1} of {len(labels)} ({label})"
                    self._workers.append(_start(name, memory.descriptor, check))
            frames = [frame(JOB, payload) for payload in payloads]
            self.introductions = self._exchange(frames)
            """What each worker's job told when it was ready."""
        except BaseException:
            self.close()
            raise

    def tell_all(self, message: bytes) -> list[Any]:
        """Send the same `frame` to all workers; returns their answers, in order."""
        return self.tell([message] * len(self._workers))

    def tell(self, messages: Iterable[bytes]) -> list[Any]:
        """Send each worker its `frame`; returns their answers, in order."""
        if not self.close.alive:
            raise HeadraceError("its worker processes have ended; make a new one")
        try:
            return self._exchange(messages)
        except BaseException:
            self.close()
            raise

    def _exchange(self, messages: Iterable[bytes]) -> list[Any]:
        for worker, message in zip(self._workers, messages, strict=True):
            try:
                worker.channel.send(message)
            except ConnectionError:
                raise _death(worker) from None
        return [self._answer(worker) for worker in self._workers]

    def _answer(self, worker: _Worker) -> Any:
        message = worker.channel.receive()
        if message is None:
            raise _death(worker)
        if message.kind == FAILED:
            raise WorkerDiedError(f"{worker.label} failed: {message.payload}")
        return message.payload


def pickled(job: Any) -> bytes:
    """By value where it is defined in the main script; an error says what could not be sent."""
    try:
        return cloudpickle.dumps(job)
    except Exception as error:
        raise HeadraceError(
            f"the environment or the policy cannot be sent to a worker process: {error}"
        ) from error


@contextmanager
def interrupt_held_back() -> Iterator[None]:
    """A process started meanwhile is not interrupted either, until it says so itself."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start(label: str, memory: int, on_silence: Callable[[], None]) -> _Worker:
    ours, theirs = socket.socketpair()
    theirs_alive, lifeline = os.pipe()
    inherited = (theirs.fileno(), memory, theirs_alive)
    search_path = [entry for entry in sys.path if isinstance(entry, str)]
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, inherited), *search_path],
            pass_fds=inherited,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
        )
    except BaseException:
        ours.close()
        os.close(lifeline)
        raise
    finally:
        theirs.close()
        os.close(theirs_alive)
    # The kernel's time-out, since Python's own costs a system call more for each message.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(_SILENCE_S), 0))
    return _Worker(label, process, Channel(ours, on_silence), lifeline)


def _check_alive(workers: list[_Worker]) -> None:
    for worker in workers:
        if worker.process.poll() is not None:
            raise _death(worker)


def _death(worker: _Worker) -> WorkerDiedError:
    last = worker.channel.receive_left()
    if last is not None and last.kind == FAILED:
        return WorkerDiedError(f"{worker.label} failed: {last.payload}")
    try:
        code = worker.process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        return WorkerDiedError(f"{worker.label} closed its channel")
    if code >= 0:
        return WorkerDiedError(f"{worker.label} died with exit code {code}")
    hint = "; was there too little memory?" if -code == signal.SIGKILL else ""
    name = {known.value: known.name for known in signal.Signals}.get(-code, "a signal")
    return WorkerDiedError(f"{worker.label} died with exit code {code} ({name}){hint}")


def _end(workers: list[_Worker], memory: SharedArrays, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner's: the workers are not its own
        return
    for worker in workers:
        worker.channel.close()
    deadline = time.monotonic() + _GRACE_S
    try:
        for worker in workers:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
            os.close(worker.lifeline)
        memory.close()
