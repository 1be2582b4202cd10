# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: three figures, a unit."""

import math


def figures(value: float, count: int = 3) -> str:
    """A number in this many significant figures, without an exponent: 5,830 or 0.0312."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = count - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    # Rounding may have made it a figure longer: 9.996 is 10.0.
    decimals = count - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(decimals, 0)}f}"


def count(value: float) -> str:
    """How many: 4,096, or 178, or 0.0312 of one."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def quantity(value: float) -> str:
    """With a decimal prefix: 912 M, 1.19 G, 42.0 k."""
    for size, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if float(f"{value:.3g}") >= size:
            return figures(value / size) + prefix
    return figures(value)


def ratio(value: float) -> str:
    """How many times: 5,830×, 13.4×."""
    return f"{figures(value)}×" if value >= 0.01 else "<0.01×"


def percent(value: float) -> str:
    """A fraction of 1: 62 %, 3.4 %, 0.02 %."""
    hundredths = 100 * value
    if hundredths >= 9.95:
        return f"{hundredths:.0f} %"
    return f"{figures(hundredths, 2 if hundredths >= 0.1 else 1)} %" if value >= 1e-4 else "<0.01 %"


def duration(seconds: float, count: int = 3) -> str:
    """A time, in this many figures: 1.24 s, 640 ms, 85.0 µs."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if float(f"{seconds:.3g}") >= size:
            return f"{figures(seconds / size, count)} {unit}"
    return f"{figures(seconds * 1e9, count)} ns"


def size_in_bytes(count: int) -> str:
    """With a binary prefix where it is a whole one: 64 B, 4 KiB."""
    for size, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count:,} B"
