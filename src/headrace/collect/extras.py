# SPDX-License-Identifier: Apache-2.0
"""Memory for a policy's own outputs, where several processes write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.collect.base import HostBuffers, HostPolicy


@dataclass(frozen=True)
class Extra:
    """One of a policy's own outputs."""

    name: str
    shape: tuple[int, ...]
    """For one environment and step."""
    dtype: np.dtype

    def zeros(self, zeros: Callable[..., np.ndarray], steps: int, num_envs: int) -> np.ndarray:
        """Its array [T, N, ...]."""
        return zeros((steps, num_envs, *self.shape), self.dtype)


def new_extras(policy: HostPolicy, buffers: HostBuffers, params: Any, clock: int) -> list[Extra]:
    """Those that there is no memory for yet, found by calling the policy once."""
    if policy.outputs_known:
        return []
    _, outputs = policy.act(params, buffers.obs[-1], clock, buffers.mask_at(-1))
    policy.outputs_known = True
    rows = {name: np.asarray(row) for name, row in outputs.items()}
    return [Extra(name, row.shape[1:], row.dtype) for name, row in rows.items()]
