# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: all that a run is, in one file each, written so that none is ever half there.

A file is an uncompressed .npz, which `numpy.load` reads: the leaves of the trainer's state by name,
and `meta.json`. Its zip format has a CRC-32 of every member, so that what was cut off or changed is
recognised.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from headrace.errors import HeadraceError
from headrace.train import trees
from headrace.train.files import remove_drafts, write_whole

CHECKPOINTS = "checkpoints"
"""The folder that they are in, in a run's."""
META = "meta.json"
FORMAT = 1
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of zip files: the same state gives the same bytes


class Loaded(NamedTuple):
    """A checkpoint that was read."""

    path: Path
    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Checkpoints:
    """Those of a run: the last few, and the one with the best evaluation."""

    folder: Path
    keep: int = 3

    def save(self, state: trees.Tree, meta: dict[str, Any]) -> Path:
        """Write one; `meta` has `env_steps`, and `score` where there was an evaluation."""
        self.folder.mkdir(exist_ok=True)
        remove_drafts(self.folder)
        path = self.folder / f"step-{meta['env_steps']:014}.npz"
        write_whole(path, lambda file: _write(file, trees.named(state), meta))
        self._forget()
        return path

    def paths(self) -> list[Path]:
        """All that there are, oldest first."""
        return sorted(self.folder.glob("step-*.npz"))

    def newest(self, complain: Callable[[str], object]) -> Loaded:
        """The newest that is whole; of each damaged one on the way there, `complain` is told."""
        for path in reversed(self.paths()):
            try:
                return read(path)
            except HeadraceError as error:
                complain(f"{error}; the checkpoint before it is used")
        raise HeadraceError(f"{self.folder} has no checkpoint that is whole")

    def _forget(self) -> None:
        """All but the last ones and the best one."""
        paths = self.paths()
        best = max(paths, key=lambda path: (_score(path), path.name))
        for path in paths[: -self.keep]:
            if path != best:
                path.unlink(missing_ok=True)


def read(path: Path) -> Loaded:
    """All of it, every byte checked; an error where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read(META))
            if meta["format"] != FORMAT:
                raise HeadraceError(
                    f"{path}: format {meta['format']}; this version reads format {FORMAT}"
                )
            names = [name for name in archive.namelist() if name != META]
            arrays = {name.removesuffix(".npy"): _read_array(archive, name) for name in names}
            if len(arrays) != meta["arrays"]:
                raise ValueError(f"it has {len(arrays)} arrays of {meta['arrays']}")
    except FileNotFoundError:
        raise HeadraceError(f"{path} is missing") from None
    except HeadraceError:
        raise
    except Exception as error:  # a changed byte can ask the zip library for almost anything
        raise HeadraceError(f"{path} is damaged: {' '.join(str(error).split())}") from error
    return Loaded(path, arrays, meta)


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # to its end: only there the checksum is compared
            raise ValueError(f"{name} is longer than its array")
    return array


def _write(file: BinaryIO, arrays: dict[str, Any], meta: dict[str, Any]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        text = json.dumps({"format": FORMAT, "arrays": len(arrays), **meta}, allow_nan=False)
        archive.writestr(_member(META), text)


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _FIRST_DATE)


def _score(path: Path) -> float:
    """Of the evaluation before it, as far as can be told."""
    try:
        with zipfile.ZipFile(path) as archive:
            score = json.loads(archive.read(META)).get("score")
    except Exception:  # damaged, and therefore not the best
        return -np.inf
    return -np.inf if score is None else score
