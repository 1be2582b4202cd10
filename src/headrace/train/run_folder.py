# SPDX-License-Identifier: Apache-2.0
"""The folder of a run: where everything is.

    config.json            everything resolved: what `headrace resume` and `--config` read
    metrics.jsonl          a line for each moment; events.out.tfevents.* is the same for TensorBoard
    checkpoints/           the last few and the best: step-00000000040960.npz
    model.safetensors      the best policy so far, and model.json, its card: `headrace.load_policy`
    result.json            how it ended
    curve.svg, video.gif   once it has ended

See docs/train.md.
"""

from __future__ import annotations

import fcntl
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from headrace.errors import HeadraceError
from headrace.train.checkpoint import CHECKPOINTS, Checkpoints
from headrace.train.config import RunConfig
from headrace.train.files import DRAFT, read_json, remove_drafts, write_json

CONFIG, RESULT, CURVE, VIDEO = "config.json", "result.json", "curve.svg", "video.gif"
FORMAT = 1


class RunFolder:
    """A folder with a run in it, for the one process that writes it: `with` takes and frees it."""

    def __init__(self, path: Path):
        self.path = path
        self._lock: int | None = None

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> Self:
        """A new run in a new folder, or an empty one."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            others = sorted(one.name for one in path.iterdir() if not one.name.startswith(DRAFT))
        except OSError as error:
            raise HeadraceError(f"{path} cannot be written ({error.strerror})") from error
        if CONFIG in others:
            raise HeadraceError(f"{path} holds a run already; headrace resume {path} continues it")
        if others:
            raise HeadraceError(
                f"{path} holds something else ({others[0]}); give an empty or new folder"
            )
        folder = cls(path)
        folder.write_config(config)
        return folder

    def write_config(self, config: RunConfig) -> None:
        """What it is made from."""
        from headrace.collect.recording import versions

        about = {"format": FORMAT, "versions": versions() | jax_versions()}
        write_json(self.path / CONFIG, about | config.to_json())

    def checkpoints(self, keep: int) -> Checkpoints:
        """Those of the run."""
        return Checkpoints(self.path / CHECKPOINTS, keep)

    def __enter__(self) -> Self:
        """Nobody else may write it from now on."""
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.__exit__()
            raise HeadraceError(f"{self.path} is being written by another process") from None
        remove_drafts(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def read_config(path: Path) -> dict[str, Any]:
    """The config.json of a run; an error where this is no folder of a run."""
    if not (path / CONFIG).is_file():
        what = "does not exist" if not path.exists() else f"is no run: it has no {CONFIG}"
        raise HeadraceError(f"{path} {what}; give the folder that headrace train wrote")
    found = read_json(path / CONFIG)
    if not isinstance(found, dict) or "format" not in found:
        raise HeadraceError(f"{path / CONFIG} is not what headrace train wrote")
    if found["format"] != FORMAT:
        raise HeadraceError(
            f"{path / CONFIG}: format {found['format']}; this version reads format {FORMAT}"
        )
    return found


def new_path(env: str, algo: str) -> Path:
    """Where a run goes if nobody says: a folder of its own in ./runs."""
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{env.replace('/', '.')}-{algo}-{now}"
    path, number = first, 2
    while path.exists():
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path


def jax_versions() -> dict[str, str]:
    """Of what decides the bits of updates."""
    from importlib.metadata import version  # JAX itself would take its time to be imported

    return {name: version(name) for name in ("jax", "jaxlib")}
