# SPDX-License-Identifier: Apache-2.0
"""A writer of a ring, for the tests that kill it: its rows tell whose they are, and their sum."""

import os
import signal
import subprocess
import sys

import numpy as np

from headrace.runtime.counters import STEPS, Counters
from headrace.runtime.fields import Field
from headrace.runtime.replay_ring import ReplayRing
from headrace.runtime.shared import SharedMemory

FIELDS = (
    Field("who", (), "<i8"),
    Field("number", (), "<i8"),
    Field("payload", (37,), "<f4"),
    Field("sum", (), "<f8"),
)
BATCH = 16


def open_channels(memory, capacity, writers):
    return ReplayRing(memory, FIELDS, capacity), Counters(memory, writers)


def fill(rows, who, first):
    """Rows `first` and following of a writer: numbers that follow from who and which."""
    count = len(rows["who"])
    number = np.arange(first, first + count)
    rows["who"][...] = who
    rows["number"][...] = number
    rows["payload"][...] = (number[:, None] * 31 + who * 7 + np.arange(37)) % 1009
    rows["sum"][...] = rows["payload"].sum(axis=1, dtype=np.float64) + number + who


def check_whole(rows):
    total = rows["payload"].sum(axis=1, dtype=np.float64) + rows["number"] + rows["who"]
    np.testing.assert_array_equal(rows["sum"], total)
    expected = {field.name: field.rows(len(total)) for field in FIELDS}
    number, who = rows["number"], rows["who"]
    expected["payload"][...] = (number[:, None] * 31 + who[:, None] * 7 + np.arange(37)) % 1009
    np.testing.assert_array_equal(rows["payload"], expected["payload"])


def start(memory, capacity, writers, index, who):
    arguments = [memory.descriptor, capacity, writers, index, who]
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)], pass_fds=[memory.descriptor]
    )


def main(descriptor, capacity, writers, index, who):
    """Write until killed."""
    ring, counters = open_channels(SharedMemory(descriptor), capacity, writers)
    rows = {field.name: field.rows(BATCH) for field in FIELDS}
    writer, line = ring.writer(index, rows), counters.samplers[index]
    line.set(STEPS, 0)
    number = 0
    while os.getppid() != 1:
        fill(rows, who, number)
        writer.write(BATCH)
        number += BATCH
        line.add(STEPS, BATCH)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(*map(int, sys.argv[1:]))
