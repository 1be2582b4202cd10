# SPDX-License-Identifier: Apache-2.0
"""Run one command against the clock, from its start to its end, and leave nothing of it behind.

    python stopwatch.py LIMIT COMMAND...

prints `{"seconds": ..., "late": ..., "status": ..., "output": ...}`, the output being the last line
of the command's. A command that takes longer than LIMIT seconds is killed. Whatever processes it
leaves (Ray's daemons, Sample Factory's workers) come to be children of this one, and end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def kill_children() -> None:
    """Kill what is left of the command, and what appears while we do."""
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def main() -> int:
    """Run, report, clean up."""
    limit, command = float(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output, late = "", False
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        seconds = time.perf_counter() - start
        kill_children()
    last = output.strip().rpartition("\n")[2]
    status = process.returncode  # None where it was killed for being late
    print(json.dumps({"seconds": seconds, "late": late, "status": status, "output": last}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
