# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks last wrote, as tables for `docs/figures.md`.

python benchmarks/tables.py best_rung vector_env        # or all that there are
"""

import json
import sys
from pathlib import Path
from typing import Any

from harness import RESULTS
from timing import format_rate


def bar_of(row: dict[str, Any]) -> str:
    """The bar, and whether it was reached."""
    if row.get("at_most") is not None:
        return f"≤ {row['at_most']:g} {verdict(row['value'] <= row['at_most'])}"
    if row.get("bar") is None:
        return "–"
    return f"≥ {row['bar']:g} {verdict(row['ratio'] >= row['bar'])}"


def verdict(reached: bool) -> str:
    """As a table says it."""
    return "reached" if reached else "**missed**"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    if "ratio" not in row:
        value = f"{row['value']:.3g} {row.get('unit', 'of the time')}"
        return f"| {row['label']} | {value} | – | – | {bar_of(row)} |"
    rates = [format_rate(row[side]) if side in row else "–" for side in ("ours", "theirs")]
    low, high = (digits(value) for value in row.get("ratio_range", (row["ratio"],) * 2))
    ratio = f"**{digits(row['ratio'])}×**" + (f" ({low}–{high})" if "ratio_range" in row else "")
    return f"| {row['label']} | {' | '.join(rates)} | {ratio} | {bar_of(row)} |"


def digits(value: float) -> str:
    """Three of them, and never an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(path: Path) -> str:
    """One benchmark."""
    found = json.loads(path.read_text())
    rows = [line(row) for row in found["rows"] if "ratio" in row or "value" in row]
    head = ["| | ours /s | theirs /s | ratio (range) | bar |", "|---|---|---|---|---|"]
    return "\n".join([f"### `{path.stem}`, {found['machine']['date'][:10]}", "", *head, *rows, ""])


def main() -> int:
    """Print them."""
    names = sys.argv[1:] or sorted(path.stem for path in RESULTS.glob("*.json"))
    for name in names:
        print(table(RESULTS / f"{name}.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
