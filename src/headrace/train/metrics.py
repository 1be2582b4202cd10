# SPDX-License-Identifier: Apache-2.0
"""What a run measured as it went: JSON lines and TensorBoard events, the same numbers in both.

`metrics.jsonl` has a line for each moment: `env_steps`, `seconds` (worked, those before a resume
included), `updates`, and any of `train/...`, `evaluation/...`, `rate/...`, `loss/...` and whatever
the algorithm measures. TensorBoard shows them by environment steps, or by wall-clock time.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.train.events import EventFile
from headrace.train.files import write_whole

LINES = "metrics.jsonl"
EVENTS = "events.out.tfevents"


class MetricsLog:
    """Appends to both; one process at a time."""

    def __init__(self, folder: Path, continue_from: int | None = None):
        """`continue_from`: environment steps after which what was written is to be forgotten."""
        self._path = folder / LINES
        self._began = time.time()
        try:
            if continue_from is not None:
                _cut(self._path, continue_from)
                for old in folder.glob(f"{EVENTS}.*"):
                    old.unlink()
            self._file = self._path.open("a", encoding="utf-8")
            name = f"{EVENTS}.{int(self._began):010}.headrace"
            self._events = EventFile(folder / name)
            for line in read(self._path) if continue_from is not None else ():
                self._events.write(line["env_steps"], line.get("time", 0.0), _numbers(line))
        except OSError as error:
            raise self._unwritable(error) from error

    def write(self, env_steps: int, seconds: float, scalars: dict[str, float]) -> None:
        """One moment."""
        now = time.time()
        line = {"env_steps": env_steps, "seconds": round(seconds, 4), "time": round(now, 3)}
        line |= {name: value for name, value in scalars.items() if math.isfinite(value)}
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            self._events.write(env_steps, now, _numbers(line))
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close both files."""
        with contextlib.suppress(OSError):  # what could not be written was told then
            self._file.close()
        self._events.close()

    def _unwritable(self, error: OSError) -> HeadraceError:
        return HeadraceError(f"{self._path} cannot be written ({error.strerror})")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; a last one that was being written is passed over."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                with contextlib.suppress(ValueError):
                    yield json.loads(line)


def _cut(path: Path, env_steps: int) -> None:
    if not path.exists():
        return
    kept = [line for line in read(path) if line["env_steps"] <= env_steps]
    text = "".join(json.dumps(line) + "\n" for line in kept)
    write_whole(path, lambda file: file.write(text.encode()))


def _numbers(line: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in ("env_steps", "time")}
