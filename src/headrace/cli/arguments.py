# SPDX-License-Identifier: Apache-2.0
"""Kinds of arguments that several commands take, and how they are read."""

from __future__ import annotations

from typing import Annotated, Any

from tyro.conf import arg

from headrace.errors import HeadraceError

Numbers = Annotated[str | None, arg(metavar="N[,N...]")]
Whole = Annotated[int | None, arg(metavar="N")]


def parts(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers(name: str, text: str | None) -> list[int] | None:
    """Whole numbers of at least 1, separated by commas."""
    if text is None:
        return None
    found = parts(text.replace("_", ""))
    if not found or not all(part.isdecimal() and int(part) > 0 for part in found):
        raise HeadraceError(
            f"{name} {text}: give a whole number of at least 1, or several separated by commas"
        )
    return [int(part) for part in found]


def option(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, a truth value or a word."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise HeadraceError(f"--set {text}: give NAME=VALUE")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False}.get(value.lower(), value)
