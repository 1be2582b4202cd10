# SPDX-License-Identifier: Apache-2.0
"""The short form of `make soak`: nothing leaks within seconds, nobody dies."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_run_at_full_speed_leaks_no_handles(tmp_path):
    script = ROOT / "benchmarks" / "async" / "soak.py"
    result = tmp_path / "soak.json"
    subprocess.run(
        [sys.executable, str(script), "--minutes", "0.2", "--json", str(result)], timeout=120
    )
    rows = {row["label"]: row["value"] for row in json.loads(result.read_text())["rows"]}
    assert rows["the run ended with"] == 0
    assert rows["processes restarted"] == 0
    assert rows["processes left"] == 0
    assert rows["segments of memory left"] == 0
    assert rows["descriptors grow by"] <= 20  # %: it has only just begun
    assert rows["memory of the sampler 0 grows by"] < 20
