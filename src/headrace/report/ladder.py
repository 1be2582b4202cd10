# SPDX-License-Identifier: Apache-2.0
"""`headrace ladder`: every way of making experience, side by side on identical work."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headrace.collect.mpi_launch import in_mpi_program
from headrace.collect.rungs import rung_class
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.interrupt import Interrupts
from headrace.report.format import duration, quantity
from headrace.report.limits import Limit, Yardsticks, count_operations
from headrace.report.machine import this_machine
from headrace.report.measure import BatchFacts, Measurement, measure
from headrace.report.plan import Case, Work, make_plan
from headrace.report.progress import Progress, Silent
from headrace.report.result import LadderResult, LeftOut, Update

SLOWEST_BATCH = 5.0
"""Seconds, or times `seconds`: in a sweep, a rung is left out where a batch would take longer."""


class LadderInterrupted(KeyboardInterrupt):
    """Ctrl-C: `result` has what was measured until then."""

    def __init__(self, result: LadderResult):
        super().__init__("the ladder was interrupted")
        self.result = result


def ladder(
    env: str | EnvSpec,
    *,
    num_envs: int | Sequence[int] | None = None,
    steps: int | None = None,
    fused_steps: int | Sequence[int] | None = None,
    state_bytes: int | Sequence[int] | None = None,
    rungs: Sequence[str] | None = None,
    seconds: float = 1.0,
    repeats: int = 5,
    threads: int | None = None,
    workers: int | None = None,
    ranks: int | None = None,
    seed: int = 0,
    update_seconds: float | None = None,
    train: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> LadderResult:
    """Measure every rung on the same batches, against the machine's limit, and for a whole run.

    The arguments are those of `headrace ladder`; several values of `num_envs`, `fused_steps` or
    `state_bytes` make a sweep. `options` are the environment's. A rung that cannot be had is in the
    result's `left_out`, with the reason. With `train`, short training with each rung tests what the
    ladder says of a whole run. `print(result.text())` shows the
    tables of the command.
    """
    if in_mpi_program():
        raise HeadraceError("the ladder starts its ranks itself: run it without mpiexec")
    plan = make_plan(
        env,
        num_envs=num_envs,
        steps=steps,
        fused_steps=fused_steps,
        state_bytes=state_bytes,
        rungs=rungs,
        seconds=seconds,
        repeats=repeats,
        threads=threads,
        workers=workers,
        ranks=ranks,
        seed=seed,
        options=options,
    )
    if update_seconds is not None and not 0 <= update_seconds < math.inf:
        raise HeadraceError(f"update_seconds is {update_seconds}; it must be at least 0")
    if train and (plan.kind != "ladder" or update_seconds is not None):
        raise HeadraceError("train goes with neither a sweep nor update_seconds: it measures both")
    given = None if update_seconds is None else Update(update_seconds, "given")
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    result = LadderResult(plan, this_machine(), now, update=given)
    watch = progress or Silent()
    needs_update = plan.kind == "ladder" and given is None
    with Interrupts() as interrupts:
        try:
            _measure(result, watch, interrupts, needs_update=needs_update, train=train)
        except KeyboardInterrupt as stop:
            result.interrupted = True
            raise LadderInterrupted(result) from stop
        finally:
            watch.stop()
    return result


def _measure(
    result: LadderResult,
    watch: Progress,
    interrupts: Interrupts,
    *,
    needs_update: bool,
    train: bool,
) -> None:
    works = list(result.plan.works())
    cases = [case for work in works for case in work.cases]
    watch.start(len(cases) * (1 + train) + needs_update)
    for work in works:
        _climb(result, work, watch, interrupts)
    interrupts.check()
    if needs_update and result.measurements:
        _learn(result, watch)
    if train and result.update:
        for case in cases:
            interrupts.check()
            watch.begin(f"training with {case.rung}")
            watch.end(_train(result, case, interrupts))


def _climb(result: LadderResult, work: Work, watch: Progress, interrupts: Interrupts) -> None:
    """Every rung on one work; the machine's limit is taken between the rungs."""
    yardsticks: Yardsticks | None = None
    for case in work.cases:
        interrupts.check()
        watch.begin(str(case))
        measured = _try(result, case, interrupts)
        if measured is None:
            watch.end("left out")
            continue
        one, seen = measured
        result.measurements.append(one)
        watch.end(f"{quantity(one.steps_per_second)} steps/s")
        if yardsticks is None:
            yardsticks = Yardsticks(seen.needed_bytes * work.num_envs * work.steps, work.threads)
            yardsticks.sample()
            result.limits.append(_first_limit(work, seen, yardsticks))
        else:
            yardsticks.sample()
            result.limits[-1] = dataclasses.replace(
                result.limits[-1],
                store_bandwidth=yardsticks.store_bandwidth,
                arithmetic_peak=yardsticks.arithmetic_peak,
            )


def _first_limit(work: Work, seen: BatchFacts, yardsticks: Yardsticks) -> Limit:
    return Limit(
        num_envs=work.num_envs,
        steps=work.steps,
        store_bandwidth=yardsticks.store_bandwidth,
        arithmetic_peak=yardsticks.arithmetic_peak,
        transition_bytes=seen.needed_bytes,
        step_operations=count_operations(work.spec, seen.ends),
        options=dict(work.spec.options),
    )


def _try(
    result: LadderResult, case: Case, interrupts: Interrupts
) -> tuple[Measurement, BatchFacts] | None:
    """Measure, or say in the result why not: one rung's failure is not the ladder's."""
    reason = _too_slow(result, case)
    if reason is None:
        try:
            needed, spec = rung_class(case.rung).definition, case.request.spec
            if needed in spec.definitions:
                plan = result.plan
                return measure(
                    case.rung, case.request, plan.seconds, plan.repeats, interrupts, case.processes
                )
            reason = f"{spec.id} has no {needed} definition"
        except HeadraceError as error:
            reason = str(error)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    result.left_out.append(LeftOut(case.rung, " ".join(reason.split())))
    return None


def _too_slow(result: LadderResult, case: Case) -> str | None:
    wanted = case.request
    for one in reversed(result.measurements):
        same = (case.rung, case.processes, wanted.fused_steps, wanted.spec.options)
        if (one.rung, one.processes, one.fused_steps, one.options) == same:
            expected = one.best_seconds * wanted.num_envs / one.num_envs
            if expected > SLOWEST_BATCH * max(result.plan.seconds, 1.0):
                return f"a batch of {wanted.num_envs:,} would take about {duration(expected)}"
            return None
    return None


def _learn(result: LadderResult, watch: Progress) -> None:
    """Time an update on a batch like the rungs'."""
    plan = result.plan
    watch.begin("a PPO update on such a batch")
    from headrace.report.update import measure_update

    try:
        seconds = measure_update(plan.spec, plan.num_envs[0], plan.steps)
    except HeadraceError as error:
        watch.end(str(error))
        return
    result.update = Update(seconds, "measured")
    watch.end(duration(seconds))


def _train(result: LadderResult, case: Case, interrupts: Interrupts) -> str:
    """Train with this rung, if it could be measured at all; what there is to say of it."""
    from headrace.report.trained import train_with
    from headrace.report.update import learner

    plan, update = result.plan, result.update
    if update is None or case.rung not in [one.rung for one in result.measurements]:
        return "left out"
    try:
        algorithm = learner(plan.spec, plan.num_envs[0], plan.steps)
        one = train_with(
            case.rung, case.request, algorithm, update.seconds, plan.seconds, plan.repeats,
            interrupts,
        )  # fmt: skip
    except Exception as error:  # one rung's failure is not the ladder's
        result.not_trained.append(LeftOut(case.rung, " ".join(str(error).split())))
        return "left out"
    result.trained.append(one)
    return f"{duration(one.iteration)} an iteration"
