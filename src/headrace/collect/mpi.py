# SPDX-License-Identifier: Apache-2.0
"""The `mpi` rung: the native kernels on every rank of an MPI job, threads within a rank.

In an ordinary process it starts its ranks itself, on this host. In a program that mpiexec started,
on one host or several, every process makes the collector, at the same time; then rank 0 collects
and closes it, and the others serve:

    with headrace.make_collector("CartPole-v1", rung="mpi", num_envs=4096) as source:
        if source.root:
            for _ in range(10):
                batch = source.collect()
        else:
            source.serve()

Environment i of the whole job is the same whatever the number of ranks.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import numpy as np

from headrace.collect.base import Collector, HostBuffers, HostPolicy, Request
from headrace.collect.batch import Batch
from headrace.collect.extras import Extra, new_extras
from headrace.collect.mpi_launch import (
    COLLECT,
    RESTORE,
    SAVE,
    Ranks,
    in_mpi_program,
    rank_name,
    require_extra,
)
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.worker_pool import default_workers, shares
from headrace.errors import HeadraceError


class _Job(Protocol):
    """The ranks, as the one sees them that collects."""

    root: bool
    whole: HostBuffers | None
    parts: list[tuple[int, int]]

    def collect(self, params: Any, extras: list[Extra]) -> list[int]: ...
    def save(self) -> dict[str, np.ndarray]: ...
    def restore(self, saved: dict[str, np.ndarray]) -> None: ...
    def serve(self) -> None: ...
    def stop(self) -> None: ...


class MpiCollector(Collector):
    """C++ in MPI ranks, all T steps a call where actions are random."""

    rung = "mpi"
    definition = "native"

    def __init__(self, request: Request):
        super().__init__(request)
        require_extra()
        self._job = _join(request) if in_mpi_program() else _Launched(request)
        self.root = self._job.root
        """Whether this process has the batches; the others serve it."""
        self._policy = HostPolicy(request)
        self._buffers: HostBuffers | None = None
        if self.root:
            assert self._job.whole is not None
            self._stop = weakref.finalize(self, self._job.stop)
            self._buffers = self._job.whole.with_own_ends()

    def collect(self, params: Any = None) -> Batch:
        """The whole batch, on the root."""
        buffers = self._require_root()
        extras = new_extras(self._policy, buffers, params, self.clock)
        counts = self._job.collect(params, extras)
        whole = self._job.whole
        assert whole is not None
        buffers.extras = whole.extras
        self.clock += self.request.steps
        return buffers.batch(buffers.take_parts(whole, self._job.parts, counts))

    def serve(self) -> None:
        """On all ranks but the root: do one's part until the root closes its collector."""
        if self.root:
            raise HeadraceError("the root collects; the other ranks serve it")
        self._job.serve()

    def save(self) -> dict[str, np.ndarray]:
        """The states of all ranks: what one would have saved."""
        self._require_root()
        return self._job.save()

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Hand the states out."""
        self._require_root()
        self._job.restore(saved)
        self.clock = int(saved["clock"])

    def close(self) -> None:
        """On the root: let all ranks go; with them, where it started them, their processes."""
        self._buffers = None
        if self.root:
            self._stop()

    def _require_root(self) -> HostBuffers:
        if not self.root:
            raise HeadraceError("rank 0 has the batches; the other ranks serve() it")
        if self._buffers is None:
            raise HeadraceError("this collector is closed")
        return self._buffers

    @property
    def calls_per_step(self) -> float:
        """A call does all steps of a batch, but for policies."""
        return 1 / self.request.steps if self.request.policy == "random" else 1.0


def _join(request: Request) -> _Job:
    """This process's part in the job that mpiexec started."""
    from mpi4py import MPI

    from headrace.collect.mpi_ranks import RankJob

    size = MPI.COMM_WORLD.size
    if request.ranks not in (None, size):
        raise HeadraceError(f"ranks is {request.ranks}; mpiexec started {size}")
    _check_ranks(size, request)
    return RankJob(MPI.COMM_WORLD, request)


def _check_ranks(ranks: int, request: Request) -> None:
    if ranks > request.num_envs:
        raise HeadraceError(f"ranks is {ranks}; num_envs is only {request.num_envs}")


class _Launched:
    """Ranks of one's own, which share the memory of the batch with this process."""

    root = True

    def __init__(self, request: Request):
        ranks = request.ranks or default_workers(request.num_envs)
        _check_ranks(ranks, request)
        self._request = request
        self._memory = SharedArrays()
        self.whole = HostBuffers(request, self._memory.zeros)
        self.parts = shares(request.num_envs, ranks)
        labels = [rank_name(rank, self.parts, request.first_env) for rank in range(ranks)]
        self._ranks = Ranks(self._memory, request, labels)
        self.stop = self._ranks.close

    def collect(self, params: Any, extras: list[Extra]) -> list[int]:
        request = self._request
        for extra in extras:
            array = extra.zeros(self._memory.zeros, request.steps, request.num_envs)
            self.whole.extras[extra.name] = array
        return self._ranks.tell(COLLECT, (params, extras))

    def save(self) -> dict[str, np.ndarray]:
        return self._ranks.tell(SAVE)

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        self._ranks.tell(RESTORE, saved)

    def serve(self) -> None:
        raise HeadraceError("these ranks serve by themselves")
