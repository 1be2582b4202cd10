# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, also after the power failed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from headrace.errors import HeadraceError

DRAFT = ".draft-"


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a file of another name; once it is on the disk, give it its own.

    An error leaves what was there before.
    """
    draft = path.with_name(f"{DRAFT}{path.name}")
    try:
        with draft.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise HeadraceError(f"{path} cannot be written ({error.strerror})") from error
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Readable, and whole or not at all."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def read_json(path: Path) -> Any:
    """What it holds; one line says what is wrong with it."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise HeadraceError(f"{path} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise HeadraceError(f"{path} is damaged: {error}") from error


def remove_drafts(folder: Path) -> None:
    """What a killed process left behind."""
    for draft in folder.glob(f"{DRAFT}*"):
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """A rename is on the disk once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
