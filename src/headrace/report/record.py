# SPDX-License-Identifier: Apache-2.0
"""What `headrace collect` does: batches to disk, with progress, until all are there or Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from headrace.collect.base import Collector, Request
from headrace.collect.batch import Batch
from headrace.collect.dataset import checksum
from headrace.collect.mpi import MpiCollector
from headrace.collect.mpi_launch import in_mpi_program
from headrace.collect.recording import Recording, versions
from headrace.collect.rungs import fastest, rung_class
from headrace.envs.registry import spec as find_spec
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.interrupt import PostponedInterrupt
from headrace.report.rates import Rates
from headrace.train.model import CARD, MODEL, load_policy

INTERRUPTED = 130
FAILED = 2

Prepared = tuple[Request, type[Collector], Any, Recording]
"""What is asked for, of which rung; the policy's parameters; where to write."""


def run_collect(
    env: str,
    *,
    out: Path,
    batches: int,
    policy: str,
    rung: str,
    resume: bool,
    options: dict[str, Any],
    **settings: Any,
) -> int:
    """Collect into the folder `out`; returns the exit code. `settings` are those of `Request`."""

    def prepare() -> Prepared:
        if batches < 1:
            raise HeadraceError(f"--batches {batches}: give a whole number of at least 1")
        clash = sorted(set(options) & {*settings, "policy", "rung"})
        if clash:
            raise HeadraceError(f"--set {clash[0]}: that is --{clash[0].replace('_', '-')}")
        spec = find_spec(env, **options)
        chosen, params = find_policy(policy, spec, rung)
        request = Request(spec, policy=chosen, **settings)
        kind = rung_class(_resolve(rung, request))
        spec.require(kind.definition, f"the {kind.rung} rung")
        recording = Recording(out, _settings(request, policy, kind), batches, resume)
        return request, kind, params, recording

    if in_mpi_program():
        return _run_ranks(prepare)
    request, kind, params, recording = prepare()
    with PostponedInterrupt() as stop, recording, kind(request) as collector:
        return _record(recording, collector, params, stop)


def find_policy(name: str, spec: EnvSpec, rung: str = "auto") -> tuple[Any, Any]:
    """The policy of this name, "random" or the folder of a trained run, and its parameters.

    A trained one explores as it did in training; by NumPy, unless the rung takes JAX alone.
    """
    if name == "random":
        return "random", None
    if not (Path(name) / CARD).is_file():
        raise HeadraceError(f"--policy {name}: that is neither 'random' nor the folder of a run")
    trained = load_policy(name, deterministic=False)
    for what in ("observation_space", "action_space"):
        ours, theirs = getattr(spec, what), getattr(trained.spec, what)
        if ours != theirs:
            raise HeadraceError(
                f"--policy {name} learnt {trained.spec.id}, whose {what} is {theirs}; that of "
                f"{spec.id} is {ours}"
            )
    library = "numpy" if rung == "auto" or "numpy" in rung_class(rung).policies else "jax"
    return trained.policy(library), trained.params


def _resolve(rung: str, request: Request) -> str:
    if in_mpi_program():
        if rung not in ("auto", "mpi"):
            raise HeadraceError(f"--rung {rung}: under mpiexec it is mpi")
        return "mpi"
    if rung != "auto":
        return rung
    return "mpi" if request.ranks else fastest(request)


def _settings(request: Request, policy: str, kind: type[Collector]) -> dict[str, Any]:
    """Everything that the bits depend on."""
    return {
        "environment": request.spec.id,
        "options": dict(request.spec.options),
        "max_episode_steps": request.spec.max_episode_steps,
        "num_envs": request.num_envs,
        "steps": request.steps,
        "policy": policy if policy == "random" else _fingerprint(Path(policy)),
        "seed": int(request.seed),
        "first_env": request.first_env,
        # Native rungs give the same bits, whatever their threads and ranks.
        "rung": "native" if kind.definition == "native" else kind.rung,
        "versions": versions(),
    }


def _fingerprint(run: Path) -> str:
    """Which policy: a run that goes on may have another one later."""
    return f"{run.resolve()} (CRC-32 {checksum(run / MODEL)})"


def _run_ranks(prepare: Callable[[], Prepared]) -> int:
    """Under mpiexec: rank 0 records, the others serve it. All of them begin, or none."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    failure, prepared = None, None
    with PostponedInterrupt() as stop, contextlib.ExitStack() as opened:
        try:
            prepared = prepare()
            if comm.rank == 0:
                opened.enter_context(prepared[3])
        except HeadraceError as error:
            failure = str(error)
        first = next((text for text in comm.allgather(failure) if text is not None), None)
        if first is not None:
            if comm.rank == 0:
                raise HeadraceError(first)
            return FAILED
        assert prepared is not None
        request, kind, params, recording = prepared
        _introduce(comm)
        with kind(request) as collector:
            assert isinstance(collector, MpiCollector)
            if collector.root:
                return _record(recording, collector, params, stop)
            collector.serve()
    return 0


def _introduce(comm: Any) -> None:
    """Say which process is which rank: mpiexec names one that died by its process alone."""
    all_of_them = comm.gather((os.getpid(), platform.node()))
    if all_of_them is not None and comm.size > 1:
        names = [f"rank {rank} is process {pid} on {host}"
                 for rank, (pid, host) in enumerate(all_of_them)]  # fmt: skip
        print("; ".join(names), file=sys.stderr, flush=True)


def _record(
    recording: Recording, collector: Collector, params: Any, stop: PostponedInterrupt
) -> int:
    console = Console(stderr=True)
    with Rates(console, recording.batches) as rates:
        rates.say(recording.done, "continuing" if recording.done else "starting")

        def again() -> Batch:
            if stop.asked:
                raise KeyboardInterrupt
            return collector.collect(params)

        recording.continue_from(collector, again)
        rates.begin(recording.done)
        while recording.done < recording.batches and not stop.asked:
            batch = collector.collect(params)
            recording.add(batch, _saved(collector))
            rates.add(recording.done, batch)
        recording.write_manifest()
    whole = f"{recording.done:,} of {recording.batches:,} batches are in {recording.folder}"
    if recording.done < recording.batches:
        text = f"stopped: {whole}; the same command with --resume continues"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return INTERRUPTED
    print(f"{whole}: {recording.transitions:,} transitions{rates.summary()}")
    return 0


def _saved(collector: Collector) -> dict[str, np.ndarray] | None:
    """Where its environments are, if it can say."""
    return collector.save() if type(collector).save is not Collector.save else None
