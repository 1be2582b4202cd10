# SPDX-License-Identifier: Apache-2.0
"""How every worker in this folder talks to `benchmarks/peer.py`: JSON lines on stdin and stdout.

A worker warms up and prints `{"ready": true, "version": ...}`. Each line `{"seconds": s}` then has
it run its timed loop for about `s` seconds and print `{"steps": n, "seconds": t}`. It ends with its
input. Whatever the peer itself prints goes to stderr.

The loop is a `block`: a callable that makes one pass over a pool of actions drawn beforehand and
returns how many environment steps that were, so that the clock is read once a block.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable

Block = Callable[[], int]
WARM_UP_SECONDS = 0.3
POOL_ACTIONS = 1 << 18
"""Actions in a pool, over all environments: about 1 MB, so that the pool stays in the caches."""


def pool_length(num_envs: int) -> int:
    """How many arrays of `num_envs` actions to draw: some variety, however many environments."""
    return max(8, min(1024, POOL_ACTIONS // num_envs))


def run_for(block: Block, seconds: float) -> tuple[int, float]:
    """Repeat `block` for about `seconds`; the steps made and the time they really took."""
    steps = 0
    start = now = time.perf_counter()
    while now < start + seconds:
        steps += block()
        now = time.perf_counter()
    return steps, now - start


def serve(version: str, block: Block) -> None:
    """Answer requests until stdin ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        run_for(block, WARM_UP_SECONDS)
        print(json.dumps({"ready": True, "version": version}), file=replies)
        for line in sys.stdin:
            block()  # its caches have cooled since the last request
            steps, elapsed = run_for(block, float(json.loads(line)["seconds"]))
            print(json.dumps({"steps": steps, "seconds": elapsed}), file=replies)
    finally:
        # PufferLib's workers wait for ever for a parent that has ended, each on a core.
        for child in multiprocessing.active_children():
            child.kill()
