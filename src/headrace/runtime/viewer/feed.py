# SPDX-License-Identifier: Apache-2.0
"""What is to be told of a run, read from its folder and from nowhere else.

`status.json` and `status.jsonl` (of runs of several processes) say how it goes; `metrics.jsonl` (of
all runs) has what was measured. Either may be missing, and each grows while the run goes on. When a
run is resumed, what it had measured beyond its checkpoint is cut off: then all is read anew.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.runtime.status import RunEvent, Status, StatusReader
from headrace.runtime.viewer.series import Series
from headrace.train.metrics import LINES
from headrace.train.run_folder import RESULT, read_config
from headrace.train.video import VIDEOS

RATES = ("sampling", "update", "update_frames", "evaluation")
EVENTS_KEPT = 200
_SILENT_S = 30.0
"""A run that has measured nothing for so long, and left no result, was broken off."""

_FROM_METRICS = {
    "train/return": "train_return",
    "evaluation/return": "eval_return",
    "evaluation/spread": "eval_spread",
    "rate/env_steps": "sampling",
    "rate/updates": "update",
    "rate/update_frames": "update_frames",
}
"""Curves that have a place of their own on the page, by their names in `metrics.jsonl`."""


class Feed:
    """Follows the folder of a run; `refresh()` reads what is new. For one thread."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.config = read_config(folder)
        self._status = StatusReader(folder)
        self._metrics = Lines(folder / LINES)
        self._edition = 0
        self._begin()

    def _begin(self) -> None:
        self.curves: dict[str, Series] = {}
        self.status: Status | None = None
        self.events: list[RunEvent] = []
        self._last: dict[str, Any] = {}
        self._best: float | None = None

    def refresh(self) -> None:
        """Read what the run has written since."""
        for status in self._status.more():
            self._take_status(status)
        newest = self._status.newest()
        if newest is not None:
            self.status = newest
            self._take_events(newest)
        for line in self._metrics.more():
            if line is None:  # it was cut: a resumed run
                self._edition += 1000
                self._begin()
                self._status = StatusReader(self.folder)
            else:
                self._take_metrics(line)

    def run(self) -> dict[str, Any]:
        """What does not change."""
        told = {name: self.config.get(name) for name in ("env", "algo", "mode")}
        goal = {name: self.config.get(name) for name in ("total_steps", "until")}
        name = self.folder.resolve().name
        return told | {"name": name, "goal": goal, "config": _flat(self.config)}

    def moment(self) -> dict[str, Any] | None:
        """How it stands: as `Status`, without processes and events, whoever wrote it."""
        if self.status is not None:
            told = asdict(self.status)
            del told["processes"], told["events"]
            if not self.status.live and self.status.state not in ("finished", "failed"):
                told["state"] = "silent"
            return told
        if not self._last:
            return None
        return self._moment_of_metrics()

    def processes(self) -> list[dict[str, Any]]:
        """Those of the run; `count` is how many there are of the role."""
        found = self.status.processes if self.status else ()
        roles = [one.role for one in found]
        return [asdict(one) | {"count": roles.count(one.role)} for one in found]

    def videos(self) -> list[dict[str, Any]]:
        """What the run has filmed as it went, oldest first: name and environment steps."""
        found = sorted((self.folder / VIDEOS).glob("step-*.gif"))
        return [{"name": one.name, "env_steps": int(one.stem[5:])} for one in found]

    def _take_status(self, status: Status) -> None:
        where = status.env_steps, status.elapsed
        for name in RATES:
            self._add(name, *where, getattr(status.rates, name))
        for name in ("ring_fill", "staleness_mean", "staleness_max"):
            self._add(name, *where, getattr(status, name))
        if "train/return" not in self._last:
            self._add("train_return", *where, status.train_return)
        if "evaluation/return" not in self._last and status.eval_return is not None:
            points = self._curve("eval_return").points
            if not points or points[-1][2] != float(f"{status.eval_return:.6g}"):
                self._add("eval_return", *where, status.eval_return)
        self._take_events(status)

    def _take_events(self, status: Status) -> None:
        known = set(self.events)
        self.events.extend(event for event in status.events if event not in known)
        del self.events[:-EVENTS_KEPT]

    def _take_metrics(self, line: dict[str, Any]) -> None:
        if not {"env_steps", "seconds"} <= line.keys():
            return
        where = line["env_steps"], line["seconds"]
        for name, value in line.items():
            if not isinstance(value, int | float) or "/" not in name:
                continue
            first = name not in self._last
            own = _FROM_METRICS.get(name)
            if own in RATES and self.status is not None:
                own = None  # the status has it, and finer
            if own is not None and first and own in self.curves:  # begun from the status: once only
                self._drop(own)
            self._add(own or name, *where, value)
        self._last |= line
        score = line.get("evaluation/return")
        if score is not None:
            self._best = score if self._best is None else max(score, self._best)

    def _moment_of_metrics(self) -> dict[str, Any]:
        last = self._last
        return {
            "state": self._state_of_metrics(),
            "mode": self.config.get("mode"),
            "elapsed": last["seconds"],
            "env_steps": last["env_steps"],
            "updates": last.get("updates"),
            "episodes": None,
            "eval_return": last.get("evaluation/return"),
            "best_return": self._best,
            "rates": dict.fromkeys(RATES)
            | {own: last.get(name) for name, own in _FROM_METRICS.items() if own in RATES},
            "ring_fill": None,
            "ring_capacity": None,
            "staleness_mean": None,
            "staleness_max": None,
            "staleness_bound": None,
        }

    def _state_of_metrics(self) -> str:
        """As far as the files tell: the result is written last, and a run that goes on writes."""
        written, result = _written(self.folder / LINES), _written(self.folder / RESULT)
        if result >= written:
            return "finished"
        return "running" if time.time() - written < _SILENT_S else "recorded"

    def _curve(self, name: str) -> Series:
        return self.curves.setdefault(name, Series(edition=self._edition))

    def _add(self, name: str, env_steps: float, seconds: float, value: float | None) -> None:
        if value is not None:
            self._curve(name).add(env_steps, seconds, value)

    def _drop(self, name: str) -> None:
        self.curves[name] = Series(edition=self.curves[name].edition + 1)


class Lines:
    """The JSON lines of a file that grows; None, then all lines again, where it was cut."""

    def __init__(self, path: Path):
        self._path = path
        self._read = 0
        self._file = 0

    def more(self) -> Iterator[dict[str, Any] | None]:
        """Those that are new and complete."""
        try:
            with self._path.open("rb") as file:
                found = self._path.stat()
                if self._read and (found.st_ino != self._file or found.st_size < self._read):
                    self._read = 0
                    yield None
                self._file = found.st_ino
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._read += len(line)
                    with contextlib.suppress(ValueError):
                        yield json.loads(line)
        except FileNotFoundError:
            return


def _written(path: Path) -> float:
    """When; 0 where there is no such file."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """One line for each setting."""
    out: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            out[f"{prefix}{name}"] = value if isinstance(value, str) else json.dumps(value)
    return out
