# SPDX-License-Identifier: Apache-2.0
"""Experience on disk: a folder of shards, one batch each, and what describes them.

    manifest.json           environment, options, seed, versions, fields, shards with checksums
    shard-00000000.npz      a batch: `numpy.load` reads it; a member a field
    state-00000001.npz      where the environments were after so many shards, if they can be saved

A file is there whole or not at all. See docs/collect.md.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from headrace.collect.base import ENDS
from headrace.collect.batch import Batch
from headrace.errors import HeadraceError

FORMAT = 1
MANIFEST = "manifest.json"
EXTRAS = "extras."
_CHUNK = 1 << 22


def shard_name(number: int) -> str:
    """The file of this batch."""
    return f"shard-{number:08}.npz"


def arrays_of(batch: Batch) -> dict[str, np.ndarray]:
    """Everything a batch has, by the names that files use."""
    out = {}
    for item in dataclasses.fields(Batch):
        value = getattr(batch, item.name)
        if isinstance(value, dict):
            out |= {EXTRAS + name: np.asarray(array) for name, array in value.items()}
        elif value is not None:
            out[item.name] = np.asarray(value)
    return out


def batch_of(arrays: dict[str, np.ndarray]) -> Batch:
    """The batch again."""
    fields: dict[str, Any] = {
        item.name: arrays.get(item.name) for item in dataclasses.fields(Batch)
    }
    own = {name: array for name, array in arrays.items() if name.startswith(EXTRAS)}
    fields["extras"] = {name.removeprefix(EXTRAS): array for name, array in own.items()}
    return Batch(**fields)


def describe(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Their dtypes and shapes; E is the number of episodes that ended, which varies."""
    compact = "end_at" in arrays
    return {
        name: {
            "dtype": str(array.dtype),
            "shape": ["E" if compact and name in ENDS else array.shape[0], *array.shape[1:]],
        }
        for name, array in arrays.items()
    }


def checksum(path: Path) -> str:
    """CRC-32 of a file, as eight hexadecimal digits."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return f"{value:08x}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """What describes the shards of a folder; an error where it does not hold experience."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise HeadraceError(
                f"{path}: format {manifest['format']}; this version reads format {FORMAT}"
            )
    except FileNotFoundError:
        raise HeadraceError(
            f"{folder} holds no experience: there is no {MANIFEST} (headrace collect writes one)"
        ) from None
    except OSError as error:
        raise HeadraceError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, HeadraceError):
            raise
        raise HeadraceError(f"{path} is damaged: it is not what headrace wrote") from error
    return manifest


class Dataset(Sequence[Batch]):
    """Batches on disk, in the order in which they were made; arrays are mapped, not read."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self._shards: list[dict[str, Any]] = self.manifest["shards"]
        here = {path.name for path in self.folder.glob("shard-*.npz")}
        for shard in self._shards:
            if shard["file"] not in here:
                raise HeadraceError(f"{self.folder / shard['file']} is missing")

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Name, dtype and shape of every array."""
        return self.manifest["fields"]

    def __len__(self) -> int:
        return len(self._shards)

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        if isinstance(index, slice):
            return [self._batch(shard) for shard in self._shards[index]]
        return self._batch(self._shards[index])

    def __iter__(self) -> Iterator[Batch]:
        return map(self._batch, self._shards)

    def verify(self) -> None:
        """Read everything; an error names the first shard whose checksum is not its own."""
        for shard in self._shards:
            path = self.folder / shard["file"]
            if checksum(path) != shard["crc32"]:
                raise HeadraceError(f"{path} is damaged: its checksum is not {shard['crc32']}")

    def _batch(self, shard: dict[str, Any]) -> Batch:
        path = self.folder / shard["file"]
        try:
            if path.stat().st_size != shard["bytes"]:
                raise HeadraceError(
                    f"{path} is damaged: it has {path.stat().st_size} bytes of {shard['bytes']}"
                )
            return batch_of(mapped(path))
        except FileNotFoundError:
            raise HeadraceError(f"{path} is missing") from None
        except (OSError, zipfile.BadZipFile, struct.error) as error:
            raise HeadraceError(f"{path} is damaged: {error}") from error


def load(folder: str | Path) -> Dataset:
    """Experience that `headrace collect` wrote, as a sequence of batches."""
    return Dataset(folder)


def mapped(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an uncompressed .npz file, mapped into memory."""
    out = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            file.seek(member.header_offset + 26)  # the lengths of two fields that are in front
            name, extra = struct.unpack("<HH", file.read(4))
            file.seek(name + extra, 1)
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            size = int(np.prod(shape)) * dtype.itemsize
            out[member.filename.removesuffix(".npy")] = (
                np.memmap(path, dtype, "r", file.tell(), shape) if size else np.zeros(shape, dtype)
            )
    return out
