# SPDX-License-Identifier: Apache-2.0
"""The other side of `mpi_launch.Ranks`: what mpiexec runs, in every rank.

Rank 0 reads the job from the owner's channel, then does what the messages on it say until it is
closed; the others serve it. Every rank can tell the owner that it failed, and every rank dies when
the owner's end of its pipe is closed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
from collections.abc import Callable
from typing import Any

from headrace.collect.base import Request
from headrace.collect.channel import DONE, FAILED, JOB, Channel, frame
from headrace.collect.mpi_launch import COLLECT, RESTORE, SAVE
from headrace.collect.mpi_ranks import RankJob
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.worker import end_with_parent, explain
from headrace.errors import HeadraceError, WorkerDiedError


def main(end: int, memory: int, *lifelines: int) -> None:
    """Work until the channel closes. The arguments are inherited file descriptors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to answer
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for descriptor in (end, memory, *lifelines):
        os.set_inheritable(descriptor, False)
    channel = Channel(socket.socket(fileno=end))
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    end_with_parent(lifelines[comm.rank % len(lifelines)])
    try:
        if comm.size != len(lifelines):
            raise HeadraceError(
                f"{comm.size} of {len(lifelines)} ranks found each other: mpiexec is of another "
                'MPI than mpi4py; pip install "headrace[mpi]" brings a pair'
            )
        _work(channel, comm, memory)
    except BaseException as error:
        own = isinstance(error, WorkerDiedError)  # it says itself which rank
        where = "" if own else f"rank {comm.rank} of {comm.size} failed: "
        with contextlib.suppress(ConnectionError):  # the owner may have had enough already
            channel.send(frame(FAILED, where + explain(error)))
        comm.Abort(1)


def _work(channel: Channel, comm: Any, memory: int) -> None:
    payload = None
    if comm.rank == 0:
        first = channel.receive()
        payload = first.payload if first is not None and first.kind == JOB else b""
    payload = comm.bcast(payload)
    if not payload:
        return
    request: Request = pickle.loads(payload)
    job = RankJob(comm, request, SharedArrays(memory).zeros)
    if not job.root:
        job.serve()
        return
    channel.send(frame(DONE))
    actions: dict[bytes, Callable[[Any], Any]] = {
        COLLECT: lambda work: job.collect(*work),
        SAVE: lambda _: job.save(),
        RESTORE: job.restore,
    }
    with contextlib.suppress(ConnectionError):  # the owner was interrupted: no matter
        while (message := channel.receive()) is not None:
            channel.send(frame(DONE, actions[message.kind](message.payload)))
    job.stop()
