# SPDX-License-Identifier: Apache-2.0
"""What makes asynchronous runs end soon: proofs no longer than needed, processors of one's own."""

import ast
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from headrace.errors import HeadraceError
from headrace.runtime.machine import divided
from headrace.runtime.process import Process
from headrace.runtime.shared import SharedMemory
from headrace.train.config import Settings
from headrace.train.evaluate import proven


@pytest.mark.parametrize(
    ("returns", "more", "episodes"),
    [
        ([9.0] * 4, None, 4),  # missed
        ([11.0] * 4, None, 4),  # as sure as can be
        ([9.0, 11.5] * 2, [9.0, 11.5] * 2, 20),  # never sure: to the end
        ([9.0, 11.5] * 2, [5.0] * 4, 8),  # it was luck
        ([9.5, 11.5] * 2, [12.0] * 4, 8),  # it was not
    ],
)
def test_a_target_is_reached_by_more_than_luck(returns, more, episodes):
    asked = []

    def play(again):
        asked.append(again)
        return np.array(more)

    found = proven(np.array(returns), 10.0, 20, play)
    assert len(found) == episodes
    assert asked == list(range(1, episodes // 4))


def test_the_learner_and_samplers_share_no_processor(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5, 7})
    assert divided(1) == ({2}, {5, 7})
    assert divided(2) == ({2, 5}, {7})
    assert divided(3) == divided(None) == (None, None)


def nap(memory, line):
    signal.pause()


def test_a_process_runs_where_it_is_put(tmp_path):
    memory, one = SharedMemory(), {min(os.sched_getaffinity(0))}
    process = Process("nap", nap, memory.descriptor, tmp_path / "log", threads=1, on=one)
    try:
        assert os.sched_getaffinity(process.pid) == one
    finally:
        process.kill()
        process.close()
        memory.close()


def test_a_process_keeps_to_its_processors_with_all_its_threads():
    one = min(os.sched_getaffinity(0))
    program = (
        "import os, threading; from pathlib import Path;"
        "from headrace.runtime.machine import keep_to;"
        "threading.Thread(target=threading.Event().wait, daemon=True).start();"
        f"keep_to({{{one}}});"
        "print([os.sched_getaffinity(int(t.name)) for t in Path('/proc/self/task').iterdir()])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    places = ast.literal_eval(done.stdout.decode())
    assert len(places) > 1
    assert all(place == {one} for place in places)


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_is_a_part(share):
    with pytest.raises(HeadraceError, match="evaluation_share"):
        Settings(evaluation_share=share)
