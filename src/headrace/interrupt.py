# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. In a callback of the garbage collector,
of which JAX has one, it is printed and forgotten; so it is also remembered here, and raised again
at the next `check()`.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Remembers SIGINT inside a `with` block, in the main thread; elsewhere it does nothing."""

    def __init__(self) -> None:
        self._seen = False
        self._installed = False

    def __enter__(self) -> Self:
        """Take the place of Python's own handler, and of no other."""
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._remember)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        """Put Python's back."""
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was one."""
        if self._seen:
            raise KeyboardInterrupt

    def _remember(self, signal_number: int, frame: FrameType | None) -> None:
        self._seen = True
        raise KeyboardInterrupt


class PostponedInterrupt:
    """In the main thread, a first Ctrl-C inside a `with` block is only noted; a second one counts.

    For work that ends well at a place of its own choosing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        """Listen."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Put back what was there."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, signal_number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
