# SPDX-License-Identifier: Apache-2.0
"""What runs in every rank of an `mpi` job: a share of the environments, and the way to the root.

All ranks make a `RankJob`, at the same time. Then rank 0, the root, tells what to do (`collect`,
`save`, `restore`, `stop`), and the others `serve()` until it says stop. Between two commands a rank
waits without burning its processor: MPI's own waiting never sleeps, so all waiting is in `Waiting`.

Ranks on one host write their columns of the whole batch straight into shared memory; the root reads
them after the message that they are done, and no rank writes before the next command. Otherwise
each rank but the root has memory of its own, which travels by Gatherv, typed and contiguous.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

from headrace.collect.base import ENDS, STEPS, HostBuffers, Request
from headrace.collect.extras import Extra
from headrace.collect.mpi_launch import rank_name
from headrace.collect.mpi_memory import WindowArrays, forget_names, same_host
from headrace.collect.mpi_wait import Waiting, deaf_to_interrupts
from headrace.collect.native import OpenMpCollector, restore_native, save_native
from headrace.collect.native_fused import NativeFusedCollector
from headrace.collect.worker import explain
from headrace.collect.worker_pool import shares
from headrace.envs.native import max_threads
from headrace.errors import HeadraceError, WorkerDiedError

COLLECT, SAVE, RESTORE, STOP = range(4)
FAILED = -1

EXCHANGE = "HEADRACE_MPI_EXCHANGE"
"""An environment variable: "messages" exchanges as between hosts on a single one, for tests."""


class RankJob:
    """One rank's part of a job, and on the root the whole of it.

    `zeros` gives the memory of the whole batch where it is not MPI's: shared with all ranks, and
    allocated alike by all.
    """

    def __init__(
        self, comm: MPI.Intracomm, request: Request, zeros: Callable[..., np.ndarray] | None = None
    ):
        self._comm = comm
        node = same_host(comm)
        forget_names(node)
        self.root = comm.rank == 0
        self.parts = shares(request.num_envs, comm.size)
        self._first_env = request.first_env
        self._first, self._last = self.parts[comm.rank]
        self._messages = node.size < comm.size or os.environ.get(EXCHANGE) == "messages"
        usable = max_threads()
        self._wait = Waiting(crowded=node.size > usable)
        self._windows = None if zeros or self._messages else WindowArrays(node)
        self._zeros = self._windows.zeros if self._windows else zeros or np.zeros
        self._request = replace(
            request,
            num_envs=self._last - self._first,
            first_env=request.first_env + self._first,
            threads=request.threads or max(1, usable // node.size),
        )
        self.whole: HostBuffers | None = None
        """On the root, and where ranks share it: the batch, with a section of ends from each."""
        if self.root or not self._messages:
            self.whole = HostBuffers(request, self._zeros)
            self._own = self.whole.columns(self._first, self._last)
        else:
            self._own = HostBuffers(self._request)
        kind = NativeFusedCollector if request.policy == "random" else OpenMpCollector
        self._collector = kind(self._request, self._own)
        self._busy = False
        self._gather_columns(STEPS)  # what is to be seen at first
        self._settle()

    # ---- the root ----

    def collect(self, params: Any = None, extras: list[Extra] | None = None) -> list[int]:
        """The next steps, everywhere; returns how many episodes ended in each part."""
        with self._command(COLLECT, (params, extras or [])):
            return self._collect((params, extras or []))

    def save(self) -> dict[str, np.ndarray]:
        """The states of all ranks' environments, as one rank would have them."""
        with self._command(SAVE, None):
            states = self._save(None)
        assert states is not None
        native = self._collector.native
        state = np.concatenate(states, axis=native.env_axis)
        return save_native(native, state, self._collector.clock)

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Give all ranks the states that one or more had."""
        native = self._collector.native
        restore_native(native, native.make_state(self.parts[-1][1]), saved)  # raises where wrong
        with self._command(RESTORE, saved):
            self._restore(saved)

    def stop(self) -> None:
        """Let the other ranks go. An interrupted job, which could not hear of it, is ended."""
        if self._busy:
            self._comm.Abort(1)
        keep = self._free_own()
        self._tell(STOP, keep)
        self._release(keep)

    @contextlib.contextmanager
    def _command(self, kind: int, payload: Any) -> Iterator[None]:
        self._busy = True
        self._tell(kind, payload)
        try:
            yield
        except HeadraceError:  # all ranks know of it
            self._busy = False
            raise
        self._busy = False

    def _tell(self, kind: int, payload: Any) -> None:
        body = b"" if payload is None else pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
        self._wait(self._comm.Ibcast(np.array([kind, len(body)], np.int64)))
        if body:
            self._wait(self._comm.Ibcast(np.frombuffer(body, np.uint8)))

    # ---- the others ----

    def serve(self) -> None:
        """Do what the root tells, until it says stop."""
        actions = {COLLECT: self._collect, SAVE: self._save, RESTORE: self._restore}
        with deaf_to_interrupts():
            while True:
                kind, payload = self._hear()
                if kind == STOP:
                    self._free_own()
                    self._release(payload)
                    return
                with contextlib.suppress(WorkerDiedError):  # the root has raised it, too
                    actions[kind](payload)

    def _hear(self) -> tuple[int, Any]:
        head = np.zeros(2, np.int64)
        self._wait(self._comm.Ibcast(head))
        kind, size = head.tolist()
        if not size:
            return kind, None
        body = np.empty(size, np.uint8)
        self._wait(self._comm.Ibcast(body))
        return kind, pickle.loads(body.tobytes())

    # ---- all of them, at the same time ----

    def _collect(self, work: tuple[Any, list[Extra]]) -> list[int]:
        params, extras = work
        failure, count = None, FAILED
        try:
            self._make_extras(extras)
            batch = self._collector.collect(params)
            assert batch.end_at is not None
            count = len(batch.end_at)
            self._own.end_at[:count, 1] += self._first
        except Exception as error:
            failure = error
        counts = np.zeros(self._comm.size, np.int64)
        self._wait(self._comm.Iallgather(np.array([count], np.int64), counts))
        if FAILED in counts:
            self._raise_together(failure)
        if self._windows:
            self._windows.sync()
        self._gather_columns((*STEPS, *self._own.extras))
        self._gather_ends(counts)
        return counts.tolist()

    def _raise_together(self, failure: Exception | None) -> None:
        text = None if failure is None else explain(failure)
        texts = self._comm.allgather(text)
        rank = next(rank for rank, one in enumerate(texts) if one is not None)
        name = rank_name(rank, self.parts, self._first_env)
        raise WorkerDiedError(f"{name} failed: {texts[rank]}") from failure

    def _save(self, _: None) -> list[np.ndarray] | None:
        return self._comm.gather(self._collector.state)

    def _restore(self, saved: dict[str, np.ndarray]) -> None:
        where = [slice(None), slice(None)]
        where[self._collector.native.env_axis] = slice(self._first, self._last)
        self._collector.restore({**saved, "state": saved["state"][tuple(where)]})
        self._gather_columns(STEPS)
        self._settle()

    def _make_extras(self, extras: list[Extra]) -> None:
        steps = self._request.steps
        for extra in extras:
            if self.whole is not None:
                array = extra.zeros(self._zeros, steps, self.parts[-1][1])
                self.whole.extras[extra.name] = array
                self._own.extras[extra.name] = array[:, self._first : self._last]
            else:
                self._own.extras[extra.name] = extra.zeros(np.zeros, steps, self._request.num_envs)

    def _gather_columns(self, names: tuple[str, ...]) -> None:
        """Between hosts: every rank's columns to the root."""
        if not self._messages:
            return
        for name in names:
            own = _array(self._own, name)
            if own is None:
                continue
            if not self.root:
                self._gatherv(own, None, [])
                continue
            assert self.whole is not None
            whole = _array(self.whole, name)
            rows, row = len(whole), whole[0, 0].nbytes
            blocks = [rows * (last - first) * row for first, last in self.parts]
            blocks[0] = 0  # the root's own are where they should be
            staging = np.empty(sum(blocks), np.uint8)
            self._gatherv(None, staging, blocks)
            at = 0
            for (first, last), size in zip(self.parts[1:], blocks[1:], strict=True):
                shape = (rows, last - first, *whole.shape[2:])
                block = staging[at : at + size].view(whole.dtype).reshape(shape)
                whole[:, first:last] = block
                at += size

    def _gather_ends(self, counts: np.ndarray) -> None:
        """Between hosts: every rank's ended episodes to its section of the root's."""
        if not self._messages:
            return
        steps, count = self._request.steps, int(counts[self._comm.rank])
        for name in ENDS:
            own = getattr(self._own, name)
            if own is None:
                continue
            if not self.root:
                self._gatherv(own[:count], None, [])
                continue
            whole = getattr(self.whole, name)
            row = whole[:1].nbytes
            blocks = [0, *(int(rows) * row for rows in counts[1:])]
            starts = [first * steps * row for first, _ in self.parts]
            self._gatherv(None, whole.view(np.uint8).reshape(-1), blocks, starts)

    def _gatherv(
        self,
        own: np.ndarray | None,
        whole: np.ndarray | None,
        blocks: list[int],
        starts: list[int] | None = None,
    ) -> None:
        mine = np.empty(0, np.uint8) if own is None else own.reshape(-1).view(np.uint8)
        into = None if whole is None else [whole, blocks, starts, MPI.BYTE]
        self._wait(self._comm.Igatherv([mine, MPI.BYTE], into))

    def _settle(self) -> None:
        """Nobody goes on before all are here."""
        self._wait(self._comm.Ibarrier())
        if self._windows:
            self._windows.sync()

    def _free_own(self) -> list[bool]:
        """Let go of the batch; which parts of it does somebody still have?"""
        del self._collector, self._own
        self.whole = None
        return self._windows.in_use() if self._windows else []

    def _release(self, keep: list[bool]) -> None:
        if self._windows:
            self._windows.free(keep)


def _array(buffers: HostBuffers, name: str) -> Any:
    return buffers.extras[name] if name in buffers.extras else getattr(buffers, name)
