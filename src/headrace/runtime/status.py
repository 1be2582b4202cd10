# SPDX-License-Identifier: Apache-2.0
"""What a run is doing, for whoever watches it: a terminal, a page, a test.

The supervisor writes it into the run folder about once a second: `status.json` is the newest,
replaced as a whole; `status.jsonl` has a line for each moment kept, ever fewer as a run grows
older. Both stay when the run has ended, so that it can be shown afterwards. A reader needs nothing
but the folder, never waits, and never disturbs the run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

NEWEST, HISTORY = "status.json", "status.jsonl"
_SILENT_S = 10.0
"""A run that says it is running but has not said so for this long has ended without a word."""

RunState = Literal["starting", "tuning", "running", "stopping", "finished", "failed"]
ProcessState = Literal["starting", "running", "silent", "restarting", "ended"]


@dataclass(frozen=True)
class Rates:
    """Per second, over the last few seconds."""

    sampling: float = 0.0
    """Steps of environments by the samplers."""
    update: float = 0.0
    """Updates of the parameters."""
    update_frames: float = 0.0
    """Transitions learnt from: updates times the batch."""
    evaluation: float = 0.0
    """Steps of environments by the evaluator."""


@dataclass(frozen=True)
class ProcessStatus:
    """One process of the run."""

    role: str
    """supervisor, sampler, learner, evaluator or viewer."""
    index: int
    """Which of its role."""
    pid: int
    """0 where there is none at the moment."""
    state: ProcessState
    restarts: int = 0
    """How often it has been started anew."""
    reason: str = ""
    """Why the last time, in one line."""
    cpu: float = 0.0
    """Processors kept busy over the last few seconds: 1.0 is all of one."""
    memory: int = 0
    """Resident bytes; what is shared is counted by each."""


@dataclass(frozen=True)
class RunEvent:
    """Something worth a line: a process restarted, a checkpoint written, a new best."""

    time: float
    """Seconds since 1970."""
    text: str


@dataclass(frozen=True)
class Status:
    """One moment of a run."""

    time: float
    """Seconds since 1970."""
    elapsed: float
    """Seconds that the run has worked, those before a resume included."""
    state: RunState
    env: str
    algo: str
    mode: str
    """async, serial or compiled."""
    env_steps: int = 0
    updates: int = 0
    frames: int = 0
    """Transitions learnt from."""
    episodes: int = 0
    policy_version: int = 0
    """The number of the newest weights that samplers may read."""
    rates: Rates = Rates()
    ring_fill: float | None = None
    """Share of the replay memory in use; None where the algorithm has none."""
    ring_capacity: int | None = None
    """Transitions that it can hold."""
    staleness_mean: float | None = None
    """How many versions old the policy was that made what has just been learnt from."""
    staleness_max: int | None = None
    staleness_bound: int | None = None
    """What was older than this has been thrown away; None: nothing is."""
    dropped: int | None = None
    """Rollouts that were."""
    train_return: float | None = None
    """Mean return of the samplers' last episodes."""
    eval_return: float | None = None
    """Of the newest evaluation."""
    best_return: float | None = None
    """Of the best evaluation."""
    processes: tuple[ProcessStatus, ...] = ()
    events: tuple[RunEvent, ...] = ()
    """The last ones, oldest first."""
    settings: dict[str, Any] | None = None
    """What was chosen for this machine: samplers, envs_per_sampler, batch_size, ..."""

    def to_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Status:
        """What `to_json` gave; fields that a newer version added are passed over."""
        known = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        known["rates"] = Rates(**data.get("rates", {}))
        known["processes"] = tuple(ProcessStatus(**one) for one in data.get("processes", ()))
        known["events"] = tuple(RunEvent(**one) for one in data.get("events", ()))
        return cls(**known)

    @property
    def live(self) -> bool:
        """Whether the run is going on, as far as this tells."""
        return self.state not in ("finished", "failed") and time.time() - self.time < _SILENT_S


class StatusWriter:
    """Writes the status of a run into its folder. One process, one thread."""

    def __init__(self, folder: Path):
        self._newest = folder / NEWEST
        self._draft = folder / f".{NEWEST}"
        self._history = folder / HISTORY
        self._kept_at = -1.0

    def write(self, status: Status, *, keep: bool = False) -> None:
        """Replace the newest; keep it in the history if `keep`, or if it is time for one more.

        Lines are kept a second apart at first, and later a 2000th of the run's age, so that the
        history of a run of days is a few megabytes.
        """
        line = json.dumps(status.to_json())
        self._draft.write_text(line + "\n", "utf-8")
        self._draft.replace(self._newest)
        if keep or status.elapsed - self._kept_at >= max(0.9, status.elapsed / 2000):
            self._kept_at = status.elapsed
            with self._history.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


class StatusReader:
    """Reads the status of a running or finished run from its folder."""

    def __init__(self, folder: str | os.PathLike[str]):
        self._newest = Path(folder) / NEWEST
        self._history = Path(folder) / HISTORY
        self._read = 0

    def newest(self) -> Status | None:
        """The last that the run said of itself; None where it has not said anything."""
        try:
            return Status.from_json(json.loads(self._newest.read_text("utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def more(self) -> Iterator[Status]:
        """What the history has that this reader has not given yet: all of it the first time."""
        try:
            with self._history.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):  # it is being written
                        return
                    self._read += len(line)
                    yield Status.from_json(json.loads(line))
        except FileNotFoundError:
            return
