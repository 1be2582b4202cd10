# SPDX-License-Identifier: Apache-2.0
"""Arrays that several processes see, in memory that has no name.

The memory is passed on by its file descriptor: nothing is left of it when the last process that has
it ends, however it ends, and the size of /dev/shm does not bound it.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref

import numpy as np
import numpy.typing as npt


class SharedArrays:
    """A row of arrays of zeros, in one anonymous file.

    The process that makes it decides what arrays there are; one that was given the `descriptor`
    asks for the same shapes and dtypes in the same order, and has the same arrays. An array keeps
    its memory when the descriptor is closed.
    """

    def __init__(self, descriptor: int | None = None):
        self._ours = descriptor is None
        self.descriptor = _anonymous_file() if descriptor is None else descriptor
        """The file, for another process to inherit."""
        self.close = weakref.finalize(self, os.close, self.descriptor)
        """Close the descriptor: there are no more arrays to come."""
        self._end = 0

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
        """The next array, on pages of its own."""
        dimensions = (shape,) if isinstance(shape, int) else shape
        size = max(1, math.prod(dimensions) * np.dtype(dtype).itemsize)
        start = self._end
        self._end += -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        if self._ours:
            os.ftruncate(self.descriptor, self._end)
        return np.ndarray(dimensions, dtype, mmap.mmap(self.descriptor, size, offset=start))


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("headrace")
    descriptor, name = tempfile.mkstemp(prefix="headrace-")
    os.unlink(name)  # noqa: PTH108 - a path object would add nothing
    return descriptor
