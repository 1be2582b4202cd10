# SPDX-License-Identifier: Apache-2.0
"""Arrays that all ranks of an MPI job on one host see, in MPI's shared memory."""

from __future__ import annotations

import math
import os
import weakref
from pathlib import Path

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from headrace.errors import HeadraceError

_SHARED = Path("/dev/shm")


class WindowArrays:
    """Arrays of zeros, each in a window of its own. All ranks of `comm` call alike."""

    def __init__(self, comm: MPI.Intracomm):
        self._comm = comm
        self._windows: list[tuple[MPI.Win, weakref.ref[np.ndarray]]] = []

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
        """The next array."""
        dimensions = (shape,) if isinstance(shape, int) else shape
        size = max(1, math.prod(dimensions) * np.dtype(dtype).itemsize)
        self._require_room(size)
        mine = size if self._comm.rank == 0 else 0
        window = MPI.Win.Allocate_shared(mine, 1, comm=self._comm)
        window.Lock_all()  # for as long as there is the window: `sync` asks for it
        memory, _ = window.Shared_query(0)
        # Not by way of another array: that would be the base of all views, and outlive this one.
        array = np.ndarray(dimensions, dtype, memory)  # pyright: ignore[reportArgumentType]
        self._windows.append((window, weakref.ref(array)))
        return array

    def sync(self) -> None:
        """What ranks wrote before their last message is seen after it."""
        for window, _ in self._windows:
            window.Sync()

    def in_use(self) -> list[bool]:
        """For each array, whether somebody in this process still has it, or a view of it."""
        return [array() is not None for _, array in self._windows]

    def free(self, keep: list[bool]) -> None:
        """Give the others back. What is kept goes when the process ends."""
        for (window, _), kept in zip(self._windows, keep, strict=True):
            window.Unlock_all()
            if not kept:
                window.Free()
        self._windows.clear()

    def _require_room(self, size: int) -> None:
        room = -1
        if self._comm.rank == 0 and _SHARED.is_dir():
            found = os.statvfs(_SHARED)
            room = found.f_bavail * found.f_frsize
        room = self._comm.bcast(room)
        if 0 <= room < size:
            raise HeadraceError(
                f"the batch needs {size >> 20} MiB more of shared memory, and {_SHARED} has "
                f"{room >> 20}: enlarge it, or give fewer environments or steps"
            )


def forget_names(comm: MPI.Comm) -> None:
    """Take away the names of MPI's own shared memory, which all ranks of this host have by now.

    MPICH would take them away at its end, but not if a rank is killed.
    """
    comm.Barrier()
    if comm.rank == 0:
        for path in _own_names():
            path.unlink(missing_ok=True)
    comm.Barrier()


def _own_names() -> list[Path]:
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    names = {line.split(maxsplit=5)[-1] for line in lines if f" {_SHARED}/mpich_shm_" in line}
    return [Path(name) for name in names if not name.endswith("(deleted)")]


def same_host(comm: MPI.Intracomm) -> MPI.Intracomm:
    """The ranks that share memory with this one."""
    return MPI.Intracomm(comm.Split_type(MPI.COMM_TYPE_SHARED))
