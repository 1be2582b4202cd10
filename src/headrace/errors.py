# SPDX-License-Identifier: Apache-2.0
"""Errors that are the user's to mend: each message says what is wrong and what would be right."""

import difflib
from collections.abc import Iterable


class HeadraceError(ValueError):
    """Something asked for cannot be done; the command line prints it as one line."""


class ExtraMissingError(HeadraceError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str):
        super().__init__(f'{what} needs an extra: pip install "headrace[{extra}]"')


class WorkerDiedError(HeadraceError, RuntimeError):
    """A worker process ended, or raised, before its work was done."""


def unknown(
    kind: str, name: str, known: Iterable[str], foremost: Iterable[str] | None = None
) -> HeadraceError:
    """An error for a name that does not exist, with those that resemble it, or else `foremost`."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    listed = names if foremost is None else sorted(foremost)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(listed)}"
    return HeadraceError(f"unknown {kind} '{name}'; {hint}")
