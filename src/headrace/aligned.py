# SPDX-License-Identifier: Apache-2.0
"""Memory that begins where a cache line does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 64


def zeros(shape: int | Sequence[int], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """`np.zeros`, aligned: a kernel's 64-byte stores would otherwise touch two lines each."""
    kind = np.dtype(dtype)
    size = math.prod(shape if isinstance(shape, Sequence) else (shape,)) * kind.itemsize
    memory = np.zeros(size + LINE, np.uint8)  # pages that are not touched are not there
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(kind).reshape(shape)
