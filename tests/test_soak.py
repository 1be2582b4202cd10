# SPDX-License-Identifier: Apache-2.0
"""The short form of `make soak`: nothing leaks within seconds, nobody dies."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "async" / "soak.py"


@pytest.fixture
def soak(monkeypatch):
    """The script as a module."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "soak", module)
    spec.loader.exec_module(module)
    return module


def test_what_grows_and_what_falls_is_seen(soak):
    """A process that leaks a thousandth a moment beside one whose memory goes up and down."""
    samples = [
        soak.Sample(
            elapsed=float(i),
            updates=i,
            sampling=1000.0 - 3 * i,
            update=0.0 if i > 50 else 10.0,
            memory={"learner 0": 10_000 + 10 * i, "evaluator 0": 10_000 + 2000 * (i % 5)},
            descriptors={"learner 0": 7 + (i > 90)},
            mappings={"sampler 0": 100},
        )
        for i in range(100)
    ]
    grown = soak.growth(samples, lambda one: one.memory)
    assert grown["evaluator 0"] == 0
    assert grown["learner 0"] == pytest.approx((10_990 - 10_240) / 10_240)
    assert soak.growth(samples, lambda one: one.descriptors) == {"learner 0": pytest.approx(1 / 7)}
    assert soak.fall(samples, "sampling") == pytest.approx(0.233, abs=0.001)
    assert soak.fall(samples, "update") == 1


def test_a_run_at_full_speed_leaks_no_handles(tmp_path):
    result = tmp_path / "soak.json"
    subprocess.run(
        [sys.executable, str(SCRIPT), "--minutes", "0.2", "--json", str(result)], timeout=120
    )
    rows = {row["label"]: row["value"] for row in json.loads(result.read_text())["rows"]}
    assert rows["the run ended with"] == 0
    assert rows["processes restarted"] == 0
    assert rows["processes left"] == 0
    assert rows["segments of memory left"] == 0
    assert rows["descriptors grow by"] <= 20  # %: it has only just begun
    assert rows["memory of the sampler 0 grows by"] < 20
