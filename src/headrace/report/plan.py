# SPDX-License-Identifier: Apache-2.0
"""What a ladder is to measure, all of it checked before anything is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headrace.collect.base import Request
from headrace.collect.rungs import RUNGS
from headrace.collect.worker_pool import default_workers
from headrace.envs.registry import spec as find_spec
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError, unknown

FUSING = ("xla-fused", "native-fused", "native-xla")
"""Rungs that take `fused_steps`."""
SWEEPS_FUSION = ("native-fused",)
"""Those that show what fusion brings, unless others are named."""
PROCESSES = {"processes": "workers", "mpi": "ranks"}
"""Rungs that have processes, and what these are called."""
DECK_PROCESSES = 20
"""Workers and ranks of the deck's own ladder, on batches of as many environments."""
TRANSITIONS = 1 << 17
STEPS, STATE_SWEEP_STEPS = 32, 128

Kind = Literal["ladder", "num_envs", "fused_steps", "two_way", "state_bytes"]


@dataclass(frozen=True)
class Work:
    """What all rungs do alike, and each of them in turn."""

    spec: EnvSpec
    num_envs: int
    steps: int
    threads: int | None
    cases: list[Case]


@dataclass(frozen=True)
class Case:
    """One measurement."""

    rung: str
    request: Request

    @property
    def processes(self) -> int | None:
        """Workers or ranks, where the rung has them."""
        if self.rung not in PROCESSES:
            return None
        given = getattr(self.request, PROCESSES[self.rung])
        return min(given or default_workers(self.request.num_envs), self.request.num_envs)

    def __str__(self) -> str:
        fused = f", {self.request.fused_steps} a call" if self.request.fused_steps else ""
        if self.processes:
            fused += f", {self.processes} {PROCESSES[self.rung]}"
        options = "".join(f", {name} {value}" for name, value in self.request.spec.options.items())
        plural = "s" if self.request.num_envs > 1 else ""
        return f"{self.rung}, {self.request.num_envs:,} environment{plural}{fused}{options}"


@dataclass(frozen=True)
class Plan:
    """A ladder's settings, resolved; what has several values is a sweep."""

    spec: EnvSpec
    rungs: tuple[str, ...]
    num_envs: tuple[int, ...]
    steps: int
    fused_steps: tuple[int, ...]
    """Empty: all steps in one call."""
    state_bytes: tuple[int, ...]
    """Empty: the environment's own."""
    options: dict[str, Any]
    seconds: float
    repeats: int
    threads: int | None
    workers: int | None
    ranks: int | None
    seed: int

    @property
    def kind(self) -> Kind:
        """Which report this makes."""
        if len(self.state_bytes) > 1:
            return "state_bytes"
        if len(self.fused_steps) > 1:
            return "two_way" if len(self.num_envs) > 1 else "fused_steps"
        return "num_envs" if len(self.num_envs) > 1 else "ladder"

    def works(self) -> Iterator[Work]:
        """One after another, in the order of the sweep."""
        for spec in self._specs():
            for num_envs in self.num_envs:
                cases = [
                    Case(rung, self._request(spec, num_envs, fused, processes))
                    for rung in self.rungs
                    for fused in ((self.fused_steps or (None,)) if rung in FUSING else (None,))
                    for processes in self._processes(rung, num_envs)
                ]
                yield Work(spec, num_envs, self.steps, self.threads, cases)

    def _specs(self) -> list[EnvSpec]:
        if not self.state_bytes:
            return [self.spec]
        limit = self.spec.max_episode_steps or 0
        return [
            find_spec(
                self.spec.id, max_episode_steps=limit, **{**self.spec.options, "state_bytes": size}
            )
            for size in self.state_bytes
        ]

    def _processes(self, rung: str, num_envs: int) -> tuple[dict[str, int], ...]:
        """One for each processor, and on the deck's batch as many as it has there."""
        name = PROCESSES.get(rung)
        if name is None or getattr(self, name) or self.kind != "ladder":
            return ({},)
        if num_envs != DECK_PROCESSES or default_workers(num_envs) == DECK_PROCESSES:
            return ({},)
        return {}, {name: DECK_PROCESSES}

    def _request(
        self, spec: EnvSpec, num_envs: int, fused_steps: int | None, processes: dict[str, int]
    ) -> Request:
        return Request(
            spec,
            num_envs,
            self.steps,
            seed=self.seed,
            threads=self.threads,
            workers=processes.get("workers", self.workers),
            ranks=processes.get("ranks", self.ranks),
            fused_steps=fused_steps,
        )


def make_plan(
    env: str | EnvSpec,
    *,
    num_envs: int | Sequence[int] | None,
    steps: int | None,
    fused_steps: int | Sequence[int] | None,
    state_bytes: int | Sequence[int] | None,
    rungs: Sequence[str] | None,
    seconds: float,
    repeats: int,
    threads: int | None,
    workers: int | None,
    ranks: int | None,
    seed: int,
    options: dict[str, Any],
) -> Plan:
    """Fill in what was not given; raise for what cannot be done."""
    environments, fused, state = _values(num_envs), _values(fused_steps), _values(state_bytes)
    if isinstance(env, EnvSpec) and options:
        raise HeadraceError(f"options {sorted(options)} go with an environment's id, not its spec")
    if state and "state_bytes" not in options:
        options = options | {"state_bytes": state[0]}
    spec = env if isinstance(env, EnvSpec) else find_spec(env, **options)
    if len(state) > 1 and len(environments) > 1:
        raise HeadraceError("sweep num_envs or state_bytes, not both at once")
    steps = _default_steps(fused, state) if steps is None else steps
    if len(state) > 1 and not fused:
        fused = (1, steps)
    if not 0 < seconds < math.inf or repeats < 1:
        raise HeadraceError("seconds must be more than 0, repeats at least 1")
    for count in fused:
        if count > steps:
            raise HeadraceError(f"fused_steps {count} is more than the batch's steps, {steps}")
    plan = Plan(
        spec=spec,
        rungs=_chosen_rungs(rungs, sweeps_fusion=len(fused) > 1, sweeps_state=len(state) > 1),
        num_envs=environments or (max(TRANSITIONS // max(steps, 1), 1),),
        steps=steps,
        fused_steps=fused,
        state_bytes=state,
        options=options,
        seconds=seconds,
        repeats=repeats,
        threads=threads,
        workers=workers,
        ranks=ranks,
        seed=seed,
    )
    list(plan.works())  # makes every spec and every request, which check themselves
    return plan


def _values(given: int | Sequence[int] | None) -> tuple[int, ...]:
    if given is None:
        return ()
    return tuple(sorted(set(given))) if isinstance(given, Sequence) else (given,)


def _default_steps(fused: tuple[int, ...], state: tuple[int, ...]) -> int:
    return max(STATE_SWEEP_STEPS if len(state) > 1 else STEPS, *fused, 0)


def _chosen_rungs(
    given: Sequence[str] | None, *, sweeps_fusion: bool, sweeps_state: bool
) -> tuple[str, ...]:
    if given is None:
        return SWEEPS_FUSION if sweeps_fusion else tuple(RUNGS)
    if not given:
        raise HeadraceError(f"no rungs are named; known: {', '.join(RUNGS)}")
    for name in given:
        if name not in RUNGS:
            raise unknown("rung", name, RUNGS)
    if sweeps_fusion and not sweeps_state and (others := sorted(set(given) - set(FUSING))):
        raise HeadraceError(
            f"fused_steps can be swept for {', '.join(FUSING)}; not for {', '.join(others)}"
        )
    return tuple(name for name in RUNGS if name in given)
