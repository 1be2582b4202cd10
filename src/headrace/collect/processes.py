# SPDX-License-Identifier: Apache-2.0
"""The `processes` rung: Gymnasium environments in worker processes, over shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headrace.collect.base import Collector, HostBuffers, HostPolicy, Request
from headrace.collect.batch import Batch
from headrace.collect.channel import frame
from headrace.collect.extras import Extra, new_extras
from headrace.collect.gym_envs import GymSampler
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.worker_pool import WorkerPool, shares

_COLLECT, _STEP = b"c", b"s"


@dataclass(frozen=True)
class _Share:
    """What a worker is started with: all that is asked for, and which environments are its own."""

    request: Request
    first: int
    last: int

    def __call__(self, memory: SharedArrays) -> _CollectJob:
        return _CollectJob(self, memory)


class _CollectJob:
    """A worker's environments: whole batches of them, or one step for each message."""

    def __init__(self, share: _Share, memory: SharedArrays):
        request, self._first, self._last = share.request, share.first, share.last
        self._num_envs = request.num_envs
        self._memory = memory
        self._steps, self._t, self._ends = request.steps, 0, 0
        self._out = HostBuffers(request, memory.zeros).columns(share.first, share.last)
        own = replace(
            request, num_envs=share.last - share.first, first_env=request.first_env + share.first
        )
        self._sampler = GymSampler(own, self._out)
        self.actions = {_COLLECT: self._collect, _STEP: self._step}
        self.close = self._sampler.close

    def introduce(self) -> None:
        """Nothing: the first observations are in shared memory."""

    def _collect(self, work: tuple[Any, list[Extra]]) -> int:
        params, new_extras = work
        for extra in new_extras:
            array = extra.zeros(self._memory.zeros, self._steps, self._num_envs)
            self._out.extras[extra.name] = array[:, self._first : self._last]
        return self._finished(self._sampler.collect(params))

    def _step(self, _: None) -> int | None:
        # A copy, since environments may keep their actions.
        actions = self._out.action[self._t].copy()
        self._ends = self._sampler.step(self._t, actions, self._ends)
        self._t += 1
        if self._t < self._steps:
            return None
        ends, self._t, self._ends = self._ends, 0, 0
        return self._finished(ends)

    def _finished(self, ends: int) -> int:
        self._out.end_at[:ends, 1] += self._first
        return ends


class ProcessCollector(Collector):
    """Worker processes, each with a contiguous share of the environments.

    It gives what the `python` rung gives, whatever the number of workers. With a random or a NumPy
    policy a worker does all T steps of its share for one message; a NumPy policy sees the share
    alone, and NumPy's matrix products may differ in the last bit with the number of rows. A JAX
    policy acts here, on all environments, and costs a message for each worker and step.
    """

    rung = "processes"
    definition = "gym"

    def __init__(self, request: Request):
        super().__init__(request)
        self._memory = SharedArrays()
        self._policy = HostPolicy(request)
        self._lockstep = not isinstance(request.policy, str) and request.policy.namespace == "jax"
        self._shared = HostBuffers(request, self._memory.zeros)
        # Workers note ends of episodes in sections; here they come together.
        self._buffers = self._shared.with_own_ends()
        self._shares = shares(request.num_envs, request.workers)
        theirs = replace(request, policy="random") if self._lockstep else request
        offset = request.first_env
        self._pool = WorkerPool(
            self._memory,
            [_Share(theirs, first, last) for first, last in self._shares],
            [
                f"environments {offset + first} to {offset + last - 1}"
                for first, last in self._shares
            ],
        )

    def collect(self, params: Any = None) -> Batch:
        """Whole batches in the workers, or step by step with them."""
        counts = self._collect_in_lockstep(params) if self._lockstep else self._collect(params)
        self.clock += self.request.steps
        return self._buffers.batch(self._buffers.take_parts(self._shared, self._shares, counts))

    def _collect(self, params: Any) -> list[int]:
        work = params, self._new_extras(params)
        return self._pool.tell_all(frame(_COLLECT, work))

    def _new_extras(self, params: Any) -> list[Extra]:
        """Before the first batch: memory for the policy's own outputs."""
        extras = new_extras(self._policy, self._buffers, params, self.clock)
        for extra in extras:
            self._buffers.extras[extra.name] = extra.zeros(
                self._memory.zeros, self.request.steps, self.request.num_envs
            )
        return extras

    def _collect_in_lockstep(self, params: Any) -> list[int]:
        buffers, step = self._buffers, frame(_STEP)
        buffers.begin()
        counts: list[Any] = []
        for t in range(self.request.steps):
            action, extras = self._policy.act(
                params, buffers.obs[t], self.clock + t, buffers.mask_at(t)
            )
            buffers.action[t] = action
            buffers.set_extras(t, extras)
            counts = self._pool.tell_all(step)
        return counts

    @property
    def calls_per_step(self) -> float:
        """One for each environment, as many at a time as there are workers."""
        return self.request.num_envs

    def close(self) -> None:
        """End the workers."""
        self._pool.close()
