# SPDX-License-Identifier: Apache-2.0
"""Chess: positions to look at, perft and playouts, by the native core's rules.

The same rules on python-chess, an extra, are in modules of their own: `game`, `encoding`, `gym` and
`players`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.envs.chess.native import (
        Position,
        divide,
        fen_after,
        legal_moves,
        outcome,
        perft,
        playouts,
        repetitions,
    )

# Imported on first use: most programs that train chess never look at a position.
_HOMES = {
    "Position": "headrace.envs.chess.native",
    "divide": "headrace.envs.chess.native",
    "fen_after": "headrace.envs.chess.native",
    "legal_moves": "headrace.envs.chess.native",
    "outcome": "headrace.envs.chess.native",
    "perft": "headrace.envs.chess.native",
    "playouts": "headrace.envs.chess.native",
    "repetitions": "headrace.envs.chess.native",
}

__all__ = [
    "Position",
    "divide",
    "fen_after",
    "legal_moves",
    "outcome",
    "perft",
    "playouts",
    "repetitions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headrace.envs.chess' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
