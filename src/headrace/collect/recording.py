# SPDX-License-Identifier: Apache-2.0
"""Writing experience to disk so that a kill at any moment loses and doubles nothing.

Order is all: the environments' state after batch k is written before shard k, and state and shard
appear by a rename of a file that is on the disk. So k shards always have state k beside them, and
whatever else there is was not finished and is written again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from headrace.collect.base import Collector
from headrace.collect.batch import Batch
from headrace.collect.dataset import (
    FORMAT,
    MANIFEST,
    arrays_of,
    checksum,
    describe,
    read_manifest,
    shard_name,
)
from headrace.errors import HeadraceError

_DRAFT = ".draft-"
_MANIFEST_EVERY_S = 2.0


def versions() -> dict[str, str]:
    """Of what decides the bits."""
    import headrace

    return {
        "headrace": headrace.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


@dataclass
class Recording:
    """A folder that grows by a shard at a time. One process at a time has it."""

    folder: Path
    settings: dict[str, Any]
    """What the experience depends on: it must be the same to go on."""
    batches: int
    resume: bool
    shards: list[dict[str, Any]] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    _lock: int | None = None
    _manifest_at: float = 0.0
    _made: list[Path] = field(default_factory=list)
    """What was not there before."""

    def __enter__(self) -> Self:
        """Take the folder, and see what there is."""
        try:
            if not self.folder.exists():
                self.folder.mkdir(parents=True)
                self._made.append(self.folder)
            self._take_lock()
            self._begin()
        except BaseException as error:
            self.__exit__(type(error), error)
            if isinstance(error, OSError):
                raise self._unwritable(error) from error
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        """Let others have it; an error before the first batch leaves nothing."""
        if isinstance(error, Exception) and not self.done:
            self._leave_nothing()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def done(self) -> int:
        """Batches that are there."""
        return len(self.shards)

    @property
    def transitions(self) -> int:
        """Steps of environments that are there."""
        return self.done * self.settings["num_envs"] * self.settings["steps"]

    def continue_from(self, collector: Collector, again: Callable[[], Batch]) -> None:
        """Bring a new collector to where the last shard ended.

        From the saved states where there are such; otherwise the batches are made once more by
        `again`, which must give those that are there.
        """
        if not self.done:
            return
        state = self.folder / _state_name(self.done)
        if state.exists():
            try:
                with np.load(state) as saved:
                    collector.restore(dict(saved))
            except (OSError, ValueError, KeyError) as error:
                if isinstance(error, HeadraceError):
                    raise
                raise HeadraceError(f"{state} is damaged: {error}") from error
            return
        for number in range(self.done):
            batch = again()
            if number == self.done - 1:
                self._compare(number, batch)

    def add(self, batch: Batch, saved: dict[str, np.ndarray] | None) -> None:
        """Write the next shard, and the state that belongs after it."""
        number = self.done
        try:
            if saved is not None:
                self._write(_state_name(number + 1), lambda file: _save(file, saved))
            self._write_shard(number, arrays_of(batch))
            (self.folder / _state_name(number)).unlink(missing_ok=True)
            if time.monotonic() - self._manifest_at > _MANIFEST_EVERY_S:
                self.write_manifest()
        except OSError as error:
            raise self._unwritable(error) from error

    def write_manifest(self) -> None:
        """Say what there is now."""
        manifest = {
            "format": FORMAT,
            **self.settings,
            "batches": self.batches,
            "batches_written": self.done,
            "transitions": self.transitions,
            "episodes": sum(shard["episodes"] for shard in self.shards),
            "fields": self.fields,
            "shards": self.shards,
        }
        text = json.dumps(manifest, indent=1).encode()
        try:
            self._write(MANIFEST, lambda file: file.write(text))
        except OSError as error:
            raise self._unwritable(error) from error
        self._manifest_at = time.monotonic()

    def _begin(self) -> None:
        for draft in self.folder.glob(f"{_DRAFT}*"):
            draft.unlink()
        others = sorted(path.name for path in self.folder.iterdir())
        if MANIFEST not in others:
            if others:
                raise HeadraceError(
                    f"{self.folder} holds something else ({others[0]}); give an empty or new folder"
                )
            self._made.append(self.folder / MANIFEST)
            self.write_manifest()
            return
        manifest = read_manifest(self.folder)
        if not self.resume:
            raise HeadraceError(
                f"{self.folder} holds experience already; --resume continues it, or give another"
            )
        self._require_same(manifest)
        self.fields = manifest["fields"]
        self._find_shards(manifest["shards"])
        for state in self.folder.glob("state-*.npz"):
            if state.name != _state_name(self.done):
                state.unlink()

    def _leave_nothing(self) -> None:
        with contextlib.suppress(OSError):  # somebody else's file is there, too
            while self._made:
                path = self._made.pop()
                path.rmdir() if path == self.folder else path.unlink(missing_ok=True)

    def _require_same(self, manifest: dict[str, Any]) -> None:
        ours = json.loads(json.dumps(self.settings))
        for name, value in ours.items():
            if manifest.get(name) != value:
                raise HeadraceError(
                    f"{self.folder} was collected with {name} {manifest.get(name)!r}, "
                    f"not {value!r}; the same is needed to continue it"
                )

    def _find_shards(self, listed: list[dict[str, Any]]) -> None:
        """Those that the manifest lists, and those that were finished after it was written."""
        for shard in listed:
            path = self.folder / shard["file"]
            if not path.exists() or path.stat().st_size != shard["bytes"]:
                raise HeadraceError(f"{path} is missing or damaged; without it nothing continues")
        self.shards = list(listed)
        while (path := self.folder / shard_name(self.done)).exists():
            with np.load(path) as found:
                arrays = dict(found)
            self._list(path, arrays)
        if self.done > self.batches:
            raise HeadraceError(
                f"{self.folder} has {self.done} batches already; --batches {self.batches} is less"
            )

    def _write_shard(self, number: int, arrays: dict[str, np.ndarray]) -> None:
        self._write(shard_name(number), lambda file: _save(file, arrays))
        self._list(self.folder / shard_name(number), arrays)

    def _list(self, path: Path, arrays: dict[str, np.ndarray]) -> None:
        self.fields = self.fields or describe(arrays)
        ended = arrays["terminated"] | arrays["truncated"]
        self.shards.append(
            {
                "file": path.name,
                "bytes": path.stat().st_size,
                "crc32": checksum(path),
                "episodes": int(ended.sum()),
            }
        )

    def _compare(self, number: int, batch: Batch) -> None:
        path = self.folder / shard_name(number)
        with np.load(path) as found:
            before = dict(found)
        now = arrays_of(batch)
        same = before.keys() == now.keys() and all(
            before[name].tobytes() == now[name].tobytes() for name in now
        )
        if not same:
            raise HeadraceError(
                f"{path} cannot be made again: the environment or the policy does not repeat "
                "itself from its seed, so that this cannot be continued"
            )

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """A file that is there whole or not at all, also after the power failed."""
        draft = self.folder / f"{_DRAFT}{name}"
        try:
            with draft.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / name)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        assert self._lock is not None
        os.fsync(self._lock)  # the folder

    def _take_lock(self) -> None:
        self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeadraceError(f"{self.folder} is being written by another process") from None

    def _unwritable(self, error: OSError) -> HeadraceError:
        there = f"; its {self.done} batches are whole: --resume continues" if self.done else ""
        return HeadraceError(f"{self.folder} cannot be written ({error.strerror}){there}")


def _save(file: BinaryIO, arrays: dict[str, np.ndarray]) -> None:
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType] - it has one name of its own


def _state_name(shards: int) -> str:
    return f"state-{shards:08}.npz"
