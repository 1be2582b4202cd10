# SPDX-License-Identifier: Apache-2.0
"""Worker: rust-chess, rules alone: random legal playouts from Python, nothing observed or written.

Games end by its own `get_status`, which draws at 75 moves and the fifth repetition, not at 50 and
the third: the same questions, asked as often.
"""

from __future__ import annotations

import random
from importlib.metadata import version

import rust_chess  # pyright: ignore[reportMissingImports]
from protocol import Block, serve


def playouts() -> Block:
    """Games on one board."""
    uniform = random.Random(0).random
    ongoing = rust_chess.BoardStatus.ONGOING
    board = rust_chess.Board()

    def block() -> int:
        nonlocal board
        for _ in range(4096):
            moves = board.generate_legal_moves()
            # The moves are made as they are asked for: those behind the chosen one need not be.
            for _ in range(int(uniform() * len(moves))):
                next(moves)
            board.make_move(next(moves), False)
            if board.get_status() != ongoing:
                board = rust_chess.Board()
        return 4096

    return block


if __name__ == "__main__":
    serve(version("rust-chess"), playouts())
