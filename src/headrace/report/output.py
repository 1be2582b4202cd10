# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, and can be written before work is spent on them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from headrace.errors import HeadraceError


def check_writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Raise unless `write_whole` can write this file."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise HeadraceError(f"{option} {path}: the name must end in {' or '.join(suffixes)}")
    draft = _draft(path)
    try:
        if path.exists() and not path.is_file():
            raise HeadraceError(f"{option} {path}: that is not a regular file")
        draft.touch()
        draft.unlink()
        if path.exists():
            with path.open("ab"):
                pass
    except OSError as error:
        raise HeadraceError(f"{option} {path}: cannot be written ({error.strerror})") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file of another name beside it, then give it its own."""
    draft = _draft(path)
    try:
        write(draft)
        draft.replace(path.resolve())
    except OSError as error:
        raise HeadraceError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        draft.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    # In the folder of the file itself, not of a link to it: a rename stays on one file system.
    target = path.resolve()
    return target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
