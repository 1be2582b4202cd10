# SPDX-License-Identifier: Apache-2.0
"""A position as an image: from white's side, with the last move marked and a king in check red."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from headrace.envs.chess.extra import chess

SQUARE = 56
MARGIN = 22
SIZE = 8 * SQUARE + 2 * MARGIN

FRAME, LETTERS = (48, 46, 43), (190, 184, 172)
LIGHT, DARK = (238, 223, 193), (168, 127, 94)
MOVED_LIGHT, MOVED_DARK, CHECKED = (246, 236, 130), (206, 186, 66), (226, 92, 74)
WHITE, BLACK, EDGE_OF_WHITE, EDGE_OF_BLACK = (252, 250, 245), (38, 34, 32), (38, 34, 32), None

_FILLED = {"p": "♟", "n": "♞", "b": "♝", "r": "♜", "q": "♛", "k": "♚"}


def draw(board: chess.Board) -> npt.NDArray[np.uint8]:
    """[SIZE, SIZE, 3]"""
    image = Image.new("RGB", (SIZE, SIZE), FRAME)
    pen = ImageDraw.Draw(image)
    moved = {board.peek().from_square, board.peek().to_square} if board.move_stack else set()
    checked = board.king(board.turn) if board.is_check() else None
    for square in chess.SQUARES:
        left, top = _corner(square)
        light = (chess.square_file(square) + chess.square_rank(square)) % 2 == 1
        colour = LIGHT if light else DARK
        if square in moved:
            colour = MOVED_LIGHT if light else MOVED_DARK
        if square == checked:
            colour = CHECKED
        pen.rectangle((left, top, left + SQUARE - 1, top + SQUARE - 1), fill=colour)
    for square, piece in board.piece_map().items():
        image.paste(*_placed(piece.symbol(), square))
    for i in range(8):
        middle = MARGIN + SQUARE * i + SQUARE // 2
        for edge in (MARGIN // 2, SIZE - MARGIN // 2):
            pen.text((middle, edge), "abcdefgh"[i], LETTERS, _font(13), anchor="mm")
            pen.text((edge, middle), str(8 - i), LETTERS, _font(13), anchor="mm")
    return np.asarray(image)


def _corner(square: int) -> tuple[int, int]:
    """Left and top of a square."""
    file, rank = chess.square_file(square), chess.square_rank(square)
    return MARGIN + SQUARE * file, MARGIN + SQUARE * (7 - rank)


def _placed(symbol: str, square: int) -> tuple[Image.Image, tuple[int, int], Image.Image]:
    piece = _piece(symbol)
    return piece, _corner(square), piece.getchannel("A")


@cache
def _piece(symbol: str) -> Image.Image:
    """A chessman on nothing. White ones are black ones filled white, with a black edge."""
    scale = 4  # drawn large, then made small: smooth edges
    side = scale * SQUARE
    image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    white = symbol.isupper()
    ImageDraw.Draw(image).text(
        (side / 2, side / 2),
        _FILLED[symbol.lower()],
        WHITE if white else BLACK,
        _font(round(0.84 * side)),
        anchor="mm",
        stroke_width=scale,
        stroke_fill=EDGE_OF_WHITE if white else EDGE_OF_BLACK,
    )
    return image.resize((SQUARE, SQUARE), Image.Resampling.LANCZOS)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """A font that has chessmen: DejaVu, which comes with matplotlib; that is not imported here."""
    found = find_spec("matplotlib")
    assert found is not None
    assert found.origin is not None
    return ImageFont.truetype(Path(found.origin).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf", size)
