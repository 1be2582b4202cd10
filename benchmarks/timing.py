# SPDX-License-Identifier: Apache-2.0
"""Timing two things alternately, and writing down what came of it.

On a shared machine a rate says little and a ratio of neighbouring measurements much: `interleave`
times ours and theirs in turn, and takes the median of the pairwise ratios.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Rate = Callable[[float], float]
"""Runs for about the seconds it is given; returns steps per second."""


def spread(values: tuple[float, ...]) -> float:
    """The distance between the quartiles, as a fraction of the median."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / statistics.median(values)


@dataclass(frozen=True)
class Comparison:
    """Rates of ours and of theirs, in pairs measured one straight after the other."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours over theirs, pair by pair."""
        return tuple(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """How many times as fast ours is: the median of the pairwise ratios."""
        return statistics.median(self.ratios)

    def row(self, label: str) -> str:
        """One line for a terminal: both medians, the ratio, and the range of the ratios."""
        ours, theirs = statistics.median(self.ours), statistics.median(self.theirs)
        return (
            f"{label:32} ours {format_rate(ours):>8} ±{spread(self.ours):4.0%}"
            f"   theirs {format_rate(theirs):>8} ±{spread(self.theirs):4.0%}"
            f"   {self.ratio:8.2f} x ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        )

    def to_json(self) -> dict[str, Any]:
        """Summary and every single measurement."""
        return {
            "ours": statistics.median(self.ours),
            "theirs": statistics.median(self.theirs),
            "ours_spread": spread(self.ours),
            "theirs_spread": spread(self.theirs),
            "ratio": self.ratio,
            "ratio_range": [min(self.ratios), max(self.ratios)],
            "ours_rates": list(self.ours),
            "theirs_rates": list(self.theirs),
        }


def interleave(ours: Rate, theirs: Rate, rounds: int = 10, seconds: float = 0.3) -> Comparison:
    """Time both `rounds` times in pairs; who goes first in a pair alternates as well."""
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    our_rates: list[float] = []
    their_rates: list[float] = []
    turns = [(ours, our_rates), (theirs, their_rates)]
    for _ in range(rounds):
        for measure, rates in turns:
            rates.append(measure(seconds))
        turns.reverse()
    return Comparison(tuple(our_rates), tuple(their_rates))


def format_rate(rate: float) -> str:
    """Three digits and a unit: `1.23 M`."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if rate >= limit:
            return f"{rate / limit:.3g}{unit}"
    return f"{rate:.3g}"


def machine() -> dict[str, Any]:
    """What a figure needs beside it to be understood later."""
    versions = {"python": platform.python_version()}
    for package in ("headrace", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def write_json(path: str | Path, payload: Mapping[str, Any]) -> None:
    """Write `payload` and the machine it was measured on; a reader never sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(), **payload}, indent=2) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        temporary.chmod(0o644)  # mkstemp's files are private
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
