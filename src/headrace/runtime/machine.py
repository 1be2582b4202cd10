# SPDX-License-Identifier: Apache-2.0
"""What the operating system says of processes: processors kept busy, memory."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Usage:
    """Of one process at a time, since it was asked last; zeros where the system does not say."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def of(self, pid: int) -> tuple[float, int]:
        """Processors kept busy, and resident bytes."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        except OSError:
            return 0.0, 0
        fields = text.rpartition(")")[2].split()
        now, busy = time.monotonic(), (int(fields[11]) + int(fields[12])) / _TICK
        before, was_busy = self._last.get(pid, (now, busy))
        self._last[pid] = now, busy
        share = (busy - was_busy) / (now - before) if now > before else 0.0
        return share, int(fields[21]) * _PAGE


def processors() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def divided(learner_threads: int | None) -> tuple[set[int] | None, set[int] | None]:
    """Processors for the learner, and for the samplers; None where both may use all.

    The system's scheduler would put two processes that wake each other on one processor, and leave
    it at that for seconds.
    """
    if learner_threads is None or not hasattr(os, "sched_getaffinity"):
        return None, None
    usable = sorted(os.sched_getaffinity(0))
    if learner_threads >= len(usable):
        return None, None
    return set(usable[:learner_threads]), set(usable[learner_threads:])


def keep_to(processors: set[int]) -> None:
    """All threads of this process run on these from now on."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), processors)


def processor_name() -> str:
    """As the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
