# SPDX-License-Identifier: Apache-2.0
"""What every benchmark here has in common: its command line, its rows, its bars, its JSON."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peer import PeerMissing
from timing import Comparison, Rate, format_rate, interleave, write_json

import headrace
from headrace import Collector, EnvSpec

RESULTS = Path(__file__).resolve().parents[1] / "out" / "benchmarks"


class Benchmark:
    """Rows of ratios, each with the bar it must reach.

    `finish()` prints how many bars were reached, writes JSON and returns the exit code: 0 where all
    that could be compared were, 1 where one was missed, 2 where a peer was not installed.
    """

    def __init__(self, name: str, description: str | None, **more: Any):
        """`more` are further arguments of the command line, with their defaults."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--rounds", type=int, default=10, help="interleaved pairs a row")
        parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
        parser.add_argument("--json", type=Path, default=RESULTS / f"{name}.json")
        for argument, default in more.items():
            parser.add_argument(f"--{argument}", type=type(default), default=default)
        self.arguments = parser.parse_args()
        self.rows: list[dict[str, Any]] = []
        self.extra: dict[str, Any] = {}
        self._missing: list[str] = []

    def compare(self, label: str, ours: Rate, theirs: Rate, bar: float | None = None) -> Comparison:
        """Time both alternately and add the row."""
        ours(self.arguments.seconds / 3)  # warm both
        theirs(self.arguments.seconds / 3)
        comparison = interleave(ours, theirs, self.arguments.rounds, self.arguments.seconds)
        verdict = "" if bar is None else f"   bar {bar:g}: {_verdict(comparison.ratio >= bar)}"
        print(comparison.row(label) + verdict, flush=True)
        self.rows.append({"label": label, "bar": bar, **comparison.to_json()})
        return comparison

    def check(self, label: str, value: float, bar: float, unit: str) -> None:
        """Add a row that is one figure, to be at most the bar."""
        print(f"{label:32} {value:.3g} {unit}   bar at most {bar:g}: {_verdict(value <= bar)}")
        self.rows.append({"label": label, "value": value, "at_most": bar, "unit": unit})

    def check_ratio(self, label: str, ratio: float, bar: float | None, *, valid: bool) -> None:
        """Add a row that is ours over theirs, at most the bar; one that is not valid misses it."""
        verdict = "" if bar is None else f"   bar at most {bar:.3g}: {_verdict(ratio <= bar)}"
        verdict += "" if valid else "   NOT SOLVED by ours"
        print(f"{label:52} {ratio:6.3f}{verdict}", flush=True)
        self.rows.append({"label": label, "value": ratio, "at_most": bar, "valid": valid})

    def check_rate(
        self, label: str, ours: float, theirs: float, bar: float | None, *, valid: bool = True
    ) -> None:
        """Add a row of two rates measured already, ours to be at least `bar` times theirs."""
        ratio = ours / theirs
        verdict = "" if bar is None else f"   bar {bar:g}: {_verdict(valid and ratio >= bar)}"
        rates = f"ours {format_rate(ours):>8}   theirs {format_rate(theirs):>8}"
        print(f"{label:44} {rates}   {ratio:8.2f} x{verdict}", flush=True)
        row = {"label": label, "bar": bar, "ratio": ratio, "ours": ours, "theirs": theirs}
        self.rows.append(row | {"valid": valid})

    def with_peer(self, run: Callable[[], None]) -> None:
        """Run a part that needs a peer; where it is not installed, say how to and go on."""
        try:
            run()
        except PeerMissing as missing:
            print(f"not compared: {missing}", flush=True)
            self._missing.append(str(missing))

    def finish(self) -> int:
        """Summarise, write, and give the exit code."""
        missed = [row["label"] for row in self.rows if not _reached(row)]
        write_json(self.arguments.json, {"rows": self.rows, "missing": self._missing, **self.extra})
        print(f"\n{len(self.rows) - len(missed)} of {len(self.rows)} rows at or above their bars")
        for label in missed:
            print(f"  missed: {label}")
        print(f"written to {self.arguments.json}")
        return 1 if missed else 2 if self._missing else 0


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def _reached(row: dict[str, Any]) -> bool:
    if not row.get("valid", True):
        return False
    if "at_most" in row:
        return row["at_most"] is None or row["value"] <= row["at_most"]
    return row["bar"] is None or row["ratio"] >= row["bar"]


def repeat(step: Callable[[], Any], steps_per_call: float) -> Rate:
    """The rate of a callable, repeated; the clock is read about every millisecond."""

    def rate(seconds: float) -> float:
        start = time.perf_counter()
        step()
        once = max(time.perf_counter() - start, 1e-7)
        chunk = max(1, int(1e-3 / once))
        calls = 0
        start = now = time.perf_counter()
        while now < start + seconds:
            for _ in range(chunk):
                step()
            calls += chunk
            now = time.perf_counter()
        return calls * steps_per_call / (now - start)

    return rate


def collecting(collector: Collector, params: Any = None) -> Rate:
    """The rate of a collector: whole batches, ready to be read."""
    import jax

    def step() -> None:
        jax.block_until_ready(collector.collect(params).reward)

    return repeat(step, collector.request.num_envs * collector.request.steps)


def make(env: str | EnvSpec, rung: str, num_envs: int, steps: int, **arguments: Any) -> Collector:
    """A collector, by the arguments that benchmarks vary."""
    return headrace.make_collector(env, rung=rung, num_envs=num_envs, steps=steps, **arguments)
