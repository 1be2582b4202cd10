# SPDX-License-Identifier: Apache-2.0
"""How fast one rung makes batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from headrace.collect.base import Collector, Request
from headrace.collect.batch import Batch
from headrace.collect.rungs import rung_class
from headrace.interrupt import Interrupts


@dataclass(frozen=True)
class Measurement:
    """One rung's batches, timed."""

    rung: str
    num_envs: int
    steps: int
    fused_steps: int | None
    """Steps a call, where it was asked for."""
    startup_seconds: float
    """Construction and compilation: what the first batch took more than the others."""
    batch_seconds: list[float]
    """For each repeat, the mean time of its batches."""
    calls_per_step: float | None
    """Calls from Python into the simulator for one step of all environments; None: not known."""
    transition_bytes: float
    """Bytes of the batch, for each transition."""
    options: dict[str, Any] = field(default_factory=dict)
    """The environment's."""
    processes: int | None = None
    """Workers or ranks, where the rung has them."""

    @property
    def label(self) -> str:
        """The rung, with its number of processes."""
        return f"{self.rung} × {self.processes}" if self.processes else self.rung

    @property
    def best_seconds(self) -> float:
        """A batch, at best."""
        return min(self.batch_seconds)

    @property
    def steps_per_second(self) -> float:
        """Steps of environments, at best."""
        return self.num_envs * self.steps / self.best_seconds

    @property
    def spread(self) -> float:
        """Half the range of the repeats' rates, of the best one."""
        return (1 - self.best_seconds / max(self.batch_seconds)) / 2


@dataclass(frozen=True)
class BatchFacts:
    """What a batch tells of the work that every rung does alike."""

    transition_bytes: float
    """Bytes as this rung writes them."""
    needed_bytes: float
    """Bytes that would do: ends of episodes written only where there are some."""
    ends: float
    """Ended episodes for each transition."""


def facts(batch: Batch) -> BatchFacts:
    """Read them off a batch of either form."""
    transitions = batch.steps * batch.num_envs
    ends = int(np.asarray(batch.ended).sum())
    always = [batch.obs, batch.action, batch.reward, batch.terminated, batch.truncated]
    always += [batch.mask, batch.to_play, *batch.extras.values()]
    at_ends = [batch.final_obs, batch.final_mask, batch.episode_return, batch.episode_length]
    rows = transitions if batch.end_at is None else max(ends, 1)
    end_bytes = 2 * np.dtype(np.int32).itemsize  # its step and its environment
    end_bytes += sum(array.nbytes for array in at_ends if array is not None) / rows
    needed = sum(array.nbytes for array in always if array is not None) + ends * end_bytes
    return BatchFacts(batch.transition_bytes(), needed / transitions, ends / transitions)


def measure(
    rung: str,
    request: Request,
    seconds: float,
    repeats: int,
    interrupts: Interrupts,
    params: Any = None,
    processes: int | None = None,
) -> tuple[Measurement, BatchFacts]:
    """Time whole batches for about `seconds`, in `repeats` parts, but two batches at least.

    `params` are the policy's, if the request has one.

    Two batches before them are not timed: what the first one compiles, the second may compile again
    for the arrays that the first one made.
    """
    make = rung_class(rung)
    begin = perf_counter()
    with make(request) as collector:
        seen = facts(_batch(collector, params))
        first = perf_counter() - begin
        interrupts.check()
        _batch(collector, params)
        times = _times(collector, params, seconds, repeats, interrupts)
        calls = collector.calls_per_step
    measured = Measurement(
        rung=rung,
        num_envs=request.num_envs,
        steps=request.steps,
        fused_steps=request.fused_steps,
        startup_seconds=max(first - min(times), 0.0),
        batch_seconds=times,
        calls_per_step=None if math.isnan(calls) else calls,
        transition_bytes=seen.transition_bytes,
        options=dict(request.spec.options),
        processes=processes,
    )
    return measured, seen


def _times(
    collector: Collector, params: Any, seconds: float, repeats: int, interrupts: Interrupts
) -> list[float]:
    times: list[float] = []
    begin = perf_counter()
    while len(times) < 2 or (len(times) < repeats and perf_counter() - begin < seconds):
        batches, start, elapsed = 0, perf_counter(), 0.0
        while batches == 0 or elapsed < seconds / repeats:
            interrupts.check()
            _batch(collector, params)
            batches += 1
            elapsed = perf_counter() - start
        times.append(elapsed / batches)
    return times


def _batch(collector: Collector, params: Any) -> Batch:
    """A batch that is really there: JAX returns before it has computed."""
    batch = collector.collect(params)
    for array in (batch.obs, batch.reward, batch.last_obs, batch.final_obs):
        wait = getattr(array, "block_until_ready", None)
        if wait is not None:
            wait()
    return batch
