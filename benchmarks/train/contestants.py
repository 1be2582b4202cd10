# SPDX-License-Identifier: Apache-2.0
"""Who runs against the clock: the peers' scripts, and our own command.

Every run is a fresh process from start to end. A peer's time goes from its process's start until
an evaluation of 20 episodes reached the bar; ours until the whole process has ended, policy,
checkpoint and curve being saved by then.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peer import MARKER, VENVS, PeerError, PeerMissing
from train.peers.race import TASKS

HERE = Path(__file__).resolve().parent
FRESH_EPISODES = 100
PATIENCE = 150.0
"""Seconds after which ours counts as not solved."""
GRACE = 30.0
"""Seconds beyond a peer's own limit before it is killed."""


@dataclass(frozen=True)
class Contestant:
    """A framework with the settings that it is measured with."""

    name: str
    venv: str
    script: str
    arguments: tuple[str, ...] = ()
    limit: float = 150.0
    """Seconds after which a run counts as not solved."""


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    contestant: str
    task: str
    seed: int
    seconds: float
    """Until solved; where it was not, until it gave up."""
    solved: bool
    score: float
    env_steps: int
    train_rate: float
    """Environment steps a second in the training loop, learning included."""
    details: Mapping[str, Any]
    date: str

    def row(self) -> str:
        """One line for a terminal."""
        outcome = f"{'solved' if self.solved else 'NOT SOLVED'} at {self.score:.1f}"
        return (
            f"{self.task:14} {self.contestant:22} seed {self.seed}  {self.seconds:7.2f} s  "
            f"{outcome} after {self.env_steps:,} steps; loop {self.train_rate:,.0f}/s"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def timed(
    command: Sequence[str],
    limit: float,
    prefix: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> dict[str, Any]:
    """Run a command under the stopwatch; `prefix` is put before it, and is not timed."""
    watched = [*shlex.split(prefix), sys.executable, str(HERE / "stopwatch.py"), str(limit)]
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [*watched, *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
        )
        errors.seek(0)
        said = "".join(errors.readlines()[-20:])
    if done.returncode or not done.stdout:
        raise PeerError(f"{shlex.join(command)}\ndid not run; its last output:\n{said}")
    result = json.loads(done.stdout)
    if result["status"] and not result["late"]:
        raise PeerError(f"{shlex.join(command)}\nfailed; its last output:\n{said}")
    return result


def report_of(who: Contestant, task: str, seed: int, prefix: str = "") -> dict[str, Any]:
    """The line that a peer's script prints; empty where it had to be killed."""
    venv = VENVS / who.venv
    if not (venv / MARKER).is_file():
        raise PeerMissing(
            f"{who.name} is not installed: python benchmarks/peers/install.py {who.venv}"
        )
    # -E and -s: neither our PYTHONPATH nor the user's packages reach the peer.
    command = [str(venv / "bin" / "python"), "-E", "-s", str(HERE / "peers" / who.script), task]
    command += ["--seed", str(seed), "--limit", str(who.limit), *who.arguments]
    # There, since PufferLib leaves a link in the folder it is imported in.
    result = timed(command, who.limit + GRACE, prefix, cwd=venv)
    return {} if result["late"] else json.loads(result["output"])


def run_peer(who: Contestant, task: str, seed: int, prefix: str = "") -> Run:
    """One run of a peer until solved."""
    report = report_of(who, task, seed, prefix)
    return Run(
        who.name,
        task,
        seed,
        report.get("seconds", who.limit),
        report.get("solved", False),
        report.get("score", float("nan")),
        report.get("env_steps", 0),
        report.get("train_rate", 0.0),
        report,
        _now(),
    )


def run_ours(
    name: str, task: str, seed: int, cache: Path, prefix: str = "", flags: Sequence[str] = ()
) -> Run:
    """One run of `headrace train`, compiling into `cache`; then what it learnt is played."""
    env, bar = TASKS[task].env, TASKS[task].bar
    with tempfile.TemporaryDirectory(prefix="headrace-race-") as scratch:
        folder = Path(scratch) / "run"
        command = [str(Path(sys.executable).with_name("headrace")), "train", env]
        command += ["--algo", task.partition("-")[0], "--until", str(bar), "--seed", str(seed)]
        command += ["--out", str(folder), *flags]
        settings = {"HEADRACE_CACHE_DIR": str(cache)}
        if "JAX_COMPILATION_CACHE_DIR" in os.environ:
            raise ValueError("JAX_COMPILATION_CACHE_DIR is set: no run would be a cold one")
        try:
            result = timed(command, PATIENCE, prefix, settings)
            if result["late"]:
                raise PeerError(f"not solved in {PATIENCE:.0f} s")
        except PeerError as error:  # it counts as not solved
            failed = {"error": str(error)}
            return Run(name, task, seed, PATIENCE, False, float("nan"), 0, 0.0, failed, _now())
        told = json.loads((folder / "result.json").read_text())
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        fresh = play(folder, env, FRESH_EPISODES, seed + 10_000)
    rates = [rate for row in map(json.loads, lines) if (rate := row.get("rate/env_steps"))]
    details = {"result": told, "fresh_returns": [float(value) for value in fresh]}
    return Run(
        name,
        task,
        seed,
        result["seconds"],
        told["ending"] == "until" and bool(fresh.mean() >= bar),
        float(fresh.mean()),
        told["env_steps"],
        float(np.median(rates)) if rates else 0.0,
        details,
        _now(),
    )


def play(folder: Path, env: str, episodes: int, seed: int) -> np.ndarray:
    """Returns [episodes] of a saved policy in Gymnasium's own environment."""
    import gymnasium

    import headrace

    policy = headrace.load_policy(folder)
    returns = np.zeros(episodes)
    with gymnasium.make(env) as made:
        assert type(made.unwrapped).__module__.startswith("gymnasium.")
        for episode in range(episodes):
            obs, _ = made.reset(seed=seed + episode)
            ended = False
            while not ended:
                obs, reward, terminated, truncated, _ = made.step(policy(obs))
                returns[episode] += float(reward)
                ended = terminated or truncated
    return returns


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
