# SPDX-License-Identifier: Apache-2.0
"""How a rank waits: MPI's own waiting never sleeps."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from mpi4py import MPI

_SPIN_S = 1e-3
_LONGEST_SLEEP_S = 5e-3


class Waiting:
    """For a while at the ready, then asleep for a twentieth of the time waited so far.

    Where ranks are more than processors (`crowded`), at once asleep.
    """

    def __init__(self, *, crowded: bool):
        self._spin_s = 0.0 if crowded else _SPIN_S

    def __call__(self, request: MPI.Request) -> None:
        """Return when it is done."""
        if request.Test():
            return
        begin = time.perf_counter()
        while not request.Test():
            waited = time.perf_counter() - begin
            if waited < self._spin_s:
                os.sched_yield()
            else:
                time.sleep(min(waited / 20, _LONGEST_SLEEP_S))


@contextlib.contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C is the root's to answer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
