# SPDX-License-Identifier: Apache-2.0
"""What `headrace collect` does: batches to disk, with progress, until all are there or Ctrl-C."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, Self

from rich.console import Console

from headrace.collect.base import Collector, Request
from headrace.collect.mpi_launch import in_mpi_program
from headrace.collect.policy import Policy
from headrace.collect.recording import Recording, versions
from headrace.collect.rungs import fastest, rung_class
from headrace.envs.registry import spec as find_spec
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.report.format import quantity

INTERRUPTED = 130
_SAY_EVERY_S = 2.0


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
    if batches < 1:
        raise HeadraceError(f"--batches {batches}: give a whole number of at least 1")
    spec = find_spec(env, **options)
    chosen, params = find_policy(policy, spec)
    request = Request(spec, policy=chosen, **settings)
    if in_mpi_program():
        if rung not in ("auto", "mpi"):
            raise HeadraceError(f"--rung {rung}: under mpiexec it is mpi")
        rung = "mpi"
        if _serve(request):
            return 0
    elif rung == "auto":
        rung = "mpi" if request.ranks else fastest(request)
    kind = rung_class(rung)
    recording = Recording(out, _settings(request, policy, kind), batches, resume)
    with PostponedInterrupt() as stop, recording, kind(request) as collector:
        return _record(recording, collector, params, stop)


def find_policy(name: str, spec: EnvSpec) -> tuple[Any, Any]:
    """The policy of this name, "random" or the folder of a trained run, and its parameters."""
    if name == "random":
        return "random", None
    if not (Path(name) / "config.json").is_file():
        raise HeadraceError(f"--policy {name}: that is neither 'random' nor the folder of a run")
    import headrace

    loaded = headrace.load_policy(name)
    policy, params = loaded
    if not isinstance(policy, Policy):
        raise HeadraceError(f"--policy {name}: that run has no policy for {spec.id}")
    return policy, params


def _settings(request: Request, policy: str, kind: type[Collector]) -> dict[str, Any]:
    """Everything that the bits depend on."""
    return {
        "environment": request.spec.id,
        "options": dict(request.spec.options),
        "max_episode_steps": request.spec.max_episode_steps,
        "num_envs": request.num_envs,
        "steps": request.steps,
        "policy": policy if policy == "random" else str(Path(policy).resolve()),
        "seed": int(request.seed),
        "first_env": request.first_env,
        # Native rungs give the same bits, whatever their threads and ranks.
        "rung": "native" if kind.definition == "native" else kind.rung,
        "versions": versions(),
    }


def _serve(request: Request) -> bool:
    """Under mpiexec: whether this was a rank that serves, and has done so."""
    ...


def _record(
    recording: Recording, collector: Collector, params: Any, stop: PostponedInterrupt
) -> int:
    progress = _Said(recording, stop)
    recording.continue_from(collector, lambda: progress.again(collector.collect(params)))
    progress.begin()
    while recording.done < recording.batches and not stop.asked:
        batch = collector.collect(params)
        recording.add(batch, _saved(collector))
        progress.added()
    recording.write_manifest()
    return progress.end()
