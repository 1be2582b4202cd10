# SPDX-License-Identifier: Apache-2.0
"""The `torch` and `torch-compile` rungs: the array definition over PyTorch tensors."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np

from headrace.collect.base import Request
from headrace.collect.stepwise import StepwiseCollector
from headrace.envs.array.base import Step, init, step
from headrace.envs.array.namespace import namespace
from headrace.errors import HeadraceError

COUNTED_STEPS = 32


class TorchCollector(StepwiseCollector):
    """PyTorch, eager: some dozens of tensor operations a step."""

    rung = "torch"
    policies = ("random", "numpy")
    _namespace = "torch"

    def __init__(self, request: Request):
        super().__init__(request)
        self._ns = namespace(self._namespace)
        import torch

        if request.threads:
            torch.set_num_threads(request.threads)  # PyTorch has one number for the whole process
        self._torch = torch
        with torch.inference_mode():
            self.state, obs = init(
                self._ns, self._env, request.num_envs, request.seed, request.first_env
            )
        self._buffers.obs[-1] = obs.numpy()

    def _pure_step(self, state: Any, action: Any) -> tuple[Any, Step]:
        return step(self._ns, self._env, state, action, self.spec.max_episode_steps)

    def _step(self, action: np.ndarray) -> Step:
        with self._torch.inference_mode():
            self.state, out = self._pure_step(self.state, self._torch.from_numpy(action))
        return Step(*(part if part is None else part.numpy() for part in out))

    @property
    def calls_per_step(self) -> float:
        """Dispatched operations."""
        return self._operations

    @cached_property
    def _operations(self) -> float:
        """Counted over some random steps, which leave no trace."""
        from torch.utils._python_dispatch import TorchDispatchMode

        class Counter(TorchDispatchMode):
            calls = 0

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
                self.calls += 1
                return func(*args, **(kwargs or {}))

        state = self.state
        with self._torch.inference_mode(), Counter() as counter:
            for action in self._policy.draw(self.clock, COUNTED_STEPS):
                state, _ = self._pure_step(state, self._torch.from_numpy(action))
        return counter.calls / COUNTED_STEPS


class TorchCompileCollector(TorchCollector):
    """PyTorch, the step compiled to one call. Making it compiles, for up to a minute."""

    rung = "torch-compile"
    _namespace = "torch-compile"

    def __init__(self, request: Request):
        super().__init__(request)
        self._pure_step = self._torch.compile(  # pyright: ignore[reportCallIssue]
            self._pure_step, fullgraph=True, dynamic=False, isolate_recompiles=True
        )
        # Arrays that are one in the first state would make a program of their own.
        self.state = self._ns.map(self._torch.clone, self.state)
        self._compile()

    def _compile(self) -> None:
        """A step that leaves no trace, so that no batch waits for the compiler."""
        from torch._inductor.exc import InvalidCxxCompiler

        state = self.state
        try:
            with warnings.catch_warnings():  # PyTorch's compiler uses what PyTorch deprecates
                warnings.simplefilter("ignore", DeprecationWarning)
                self._step(self._buffers.action[0])
        except Exception as error:
            if InvalidCxxCompiler not in (type(error), type(error.__cause__)):
                raise
            raise HeadraceError(
                "the torch-compile rung needs a C++ compiler: install g++, or set CXX to one"
            ) from error
        self.state = state

    @property
    def calls_per_step(self) -> float:
        """One."""
        return 1.0
