# SPDX-License-Identifier: Apache-2.0
"""A peer framework as a benchmark sees it: a process to ask how fast it steps right now.

    with Peer("envpool", "envpool_step.py", "--env", "CartPole-v1", "--num-envs", "64") as peer:
        print(peer.version, peer.rate(0.3))

The peer runs one of the workers in `benchmarks/peers/` under the interpreter of its own virtual
environment, warmed up and idle between two questions, so that it can be timed alternately with
ours. A peer that is not installed is a `PeerMissing`: a comparison that could not be made.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
WORKERS = ROOT / "benchmarks" / "peers"
VENVS = ROOT / ".peers"
MARKER = "headrace-peer.json"


class PeerMissing(RuntimeError):  # noqa: N818 - a state of this machine, not a fault
    """The peer is not installed here; the message says how to install it. Never a win."""


class PeerError(RuntimeError):
    """The peer's process failed or did not answer; the message ends with what it printed."""


class Peer:
    """One running worker. Close it, or use it in a `with`: nothing of it is left behind."""

    version: str

    def __init__(
        self,
        name: str,
        worker: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        patience: float = 120.0,
    ) -> None:
        """Start `worker` with `arguments` and wait until it has warmed up.

        `env` adds to the environment variables, and `patience` is how many seconds an answer may
        take beyond the time that was asked for.
        """
        venv = VENVS / name
        if not (venv / MARKER).is_file():
            raise PeerMissing(f"{name} is not installed: python benchmarks/peers/install.py {name}")
        self.name = name
        self._patience = patience
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            # -E and -s: neither our PYTHONPATH nor the user's packages reach the peer.
            [str(venv / "bin" / "python"), "-E", "-s", str(WORKERS / worker), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            cwd=venv,  # PufferLib leaves a link in the folder it is imported in
            env={**os.environ, **(env or {})},
            start_new_session=True,  # a process group of its own, so that its children end with it
        )
        try:
            self.version = str(self._answer(0.0)["version"])
        except BaseException:
            self.close()
            raise

    def rate(self, seconds: float) -> float:
        """Have the worker step for about `seconds`; environment steps per second."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"seconds": seconds}) + "\n")
            self._process.stdin.flush()
            answer = self._answer(seconds)
            return answer["steps"] / answer["seconds"]
        except (BrokenPipeError, ValueError) as error:  # it has ended, or was closed
            message = self._failure("has ended")
            self.close()
            raise PeerError(message) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill the worker and its children. May be called again."""
        if self._stderr.closed:
            return
        self._kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # a request that it did not read
                stream.close()
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _kill(self) -> None:
        """Kill the whole group: it outlives the worker for as long as a child of it runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _answer(self, seconds: float) -> dict[str, Any]:
        """The worker's next line. One that takes too long is killed, which ends the wait."""
        assert self._process.stdout is not None
        limit = seconds + self._patience
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._kill()

        watchdog = threading.Timer(limit, give_up)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            why = f"gave no answer within {limit:.0f} s" if late.is_set() else "ended unexpectedly"
            raise PeerError(self._failure(why))
        return json.loads(line)

    def _failure(self, why: str) -> str:
        if self._stderr.closed:
            return f"{self.name} {why}: closed"
        self._stderr.seek(0)
        tail = "".join(self._stderr.readlines()[-20:]).strip()
        return f"{self.name} {why}; its last output:\n{tail}"
