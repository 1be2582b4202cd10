# SPDX-License-Identifier: Apache-2.0
"""The memory that the processes of a run share.

One anonymous file, passed on by its descriptor: nothing is left of it when the last process that
has it ends, however it ends, and the size of /dev/shm does not bound it. The supervisor makes it
and asks first whether there is that much memory; the others, who are given the descriptor, ask for
the same parts in the same order.

Concurrency: making the parts is before any process that uses them is started, and starting a
process happens before all that it does. What is then written at the same time as it is read lies
in channels, each with a contract of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace.collect.shared_arrays import SharedArrays
from headrace.errors import HeadraceError

_LEFT = 256 << 20
"""What is to stay free for everything else."""


class SharedMemory:
    """Parts of bytes, each beginning on a page of its own."""

    def __init__(self, descriptor: int | None = None):
        self._arrays = SharedArrays(descriptor)
        self._ours = descriptor is None
        self.descriptor = self._arrays.descriptor
        self.close = self._arrays.close

    def part(self, size: int, what: str) -> np.ndarray:
        """The next `size` bytes, zeros at first; an error says what they were for."""
        if self._ours:
            require_memory(size, what)
        try:
            return self._arrays.zeros(size, np.uint8)
        except (OSError, OverflowError) as error:
            raise HeadraceError(
                f"{what} needs {megabytes(size)} of memory, which is not to be had ({error})"
            ) from error


def require_memory(size: int, what: str) -> None:
    """Raise unless there is as much free as this machine, and this container, can tell."""
    free = available()
    if free is not None and size > free - _LEFT:
        raise HeadraceError(
            f"{what} needs {megabytes(size)} of memory; {megabytes(max(0, free - _LEFT))} are free "
            "besides what must stay so: give a smaller --replay-size"
        )


def available() -> int | None:
    """Bytes of memory that can be had now; None where nobody can tell."""
    found = [room for room in (_machine(), _container()) if room is not None]
    return min(found) if found else None


def _machine() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _container(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """By the limit of the control group: its own file cache can be taken back."""
    try:
        limit = (root / "memory.max").read_text("ascii").strip()
        if limit == "max":
            return None
        used = int((root / "memory.current").read_text("ascii"))
        stat = dict(line.split() for line in (root / "memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):
        return None
    return int(limit) - used + int(stat.get("inactive_file", 0))


def megabytes(size: int) -> str:
    """For people."""
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{size / 1e6:,.1f} MB"
