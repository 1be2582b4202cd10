# SPDX-License-Identifier: Apache-2.0
"""The `numpy` rung: the array definition, vectorised with NumPy."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from headrace.collect.base import Request
from headrace.collect.stepwise import StepwiseCollector
from headrace.envs.array.base import Step, init, step
from headrace.envs.array.namespace import namespace

COUNTED_STEPS = 32


class NumPyCollector(StepwiseCollector):
    """NumPy, some dozens of array operations a step."""

    rung = "numpy"

    def __init__(self, request: Request):
        super().__init__(request)
        self._ns = namespace("numpy")
        self.state, self._buffers.obs[-1] = init(
            self._ns, self._env, request.num_envs, request.seed, request.first_env
        )

    def _step(self, action: Any) -> Step:
        limit = self.spec.max_episode_steps
        self.state, out = step(self._ns, self._env, self.state, action, limit)
        return out

    @property
    def calls_per_step(self) -> float:
        """Operations on arrays."""
        return self._operations

    @cached_property
    def _operations(self) -> float:
        """Counted over some random steps, which leave no trace."""
        state = self._ns.map(lambda array: array.view(CountedArray), self.state)
        limit, before = self.spec.max_episode_steps, CountedArray.calls
        for action in self._policy.draw(self.clock, COUNTED_STEPS):
            state, _ = step(self._ns, self._env, state, action, limit)
        return (CountedArray.calls - before) / COUNTED_STEPS


class CountedArray(np.ndarray):
    """An array that counts what is done to it and to what comes of it."""

    calls = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Elementwise operations and reductions."""
        CountedArray.calls += 1
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return _counted(getattr(ufunc, method)(*_plain(inputs), **plain))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Functions of NumPy, whatever they do inside."""
        CountedArray.calls += 1
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return _counted(func(*_plain(args), **plain))

    def __getitem__(self, where: Any) -> Any:
        """Picking."""
        CountedArray.calls += 1
        return _counted(_plain(self)[_plain(where)])

    def __setitem__(self, where: Any, value: Any) -> None:
        """Putting."""
        CountedArray.calls += 1
        _plain(self)[_plain(where)] = _plain(value)

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """Conversion."""
        CountedArray.calls += 1
        return _counted(_plain(self).astype(*args, **kwargs))

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        """Copying."""
        CountedArray.calls += 1
        return _counted(_plain(self).copy(*args, **kwargs))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_plain(part) for part in value)
    return value.view(np.ndarray) if isinstance(value, CountedArray) else value


def _counted(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_counted(part) for part in value)
    return value.view(CountedArray) if isinstance(value, np.ndarray) else value
