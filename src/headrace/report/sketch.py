# SPDX-License-Identifier: Apache-2.0
"""A curve in a few lines of text: four rows and two columns of dots to a character."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.report.format import figures

_BRAILLE = 0x2800
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of a character, by row and column in it."""


def sketch(
    x: Sequence[float], y: Sequence[float], width: int, height: int, *, plain: bool = False
) -> list[str]:
    """So many lines, with the least and the greatest value beside them; `plain` without Braille."""
    low, high = min(y), max(y)
    if low == high:
        low, high = low - 1, high + 1
    labels = [figures(high), *[""] * (height - 2), figures(low)]
    margin = max(map(len, labels))
    rows, columns = (height, 1) if plain else (4 * height, 2)
    dots = _dots(x, y, (low, high), rows, columns * (width - margin - 1))
    lines = _characters(dots, plain=plain)
    return [f"{label:>{margin}} {line}" for label, line in zip(labels, lines, strict=True)]


def _dots(
    x: Sequence[float], y: Sequence[float], span: tuple[float, float], rows: int, columns: int
) -> np.ndarray:
    """[rows, columns] booleans, the curve drawn by straight lines between its points."""
    out = np.zeros((rows, columns), np.bool_)
    first, last = x[0], x[-1]
    across = np.linspace(first, last, columns) if last > first else np.full(columns, first)
    low, high = span
    heights = (np.interp(across, x, y) - low) / (high - low) * (rows - 1)
    down = rows - 1 - np.round(heights).astype(int)
    for column, row in enumerate(down):
        before = down[max(column - 1, 0)]
        out[min(row, before) : max(row, before) + 1, column] = True
    return out


def _characters(dots: np.ndarray, *, plain: bool) -> list[str]:
    if plain:
        return ["".join("*" if dot else " " for dot in row) for row in dots]
    rows, columns = dots.shape
    cells = dots.reshape(rows // 4, 4, columns // 2, 2).transpose(0, 2, 1, 3)
    codes = _BRAILLE + (cells * _DOTS).sum(axis=(2, 3))
    return ["".join(map(chr, row)) for row in codes]
