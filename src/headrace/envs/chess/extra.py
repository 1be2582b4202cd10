# SPDX-License-Identifier: Apache-2.0
"""python-chess, for whichever module here builds on it: an extra, GPL-licensed."""

from headrace.errors import ExtraMissingError

try:
    import chess
except ModuleNotFoundError as error:
    raise ExtraMissingError("chess in Python", "chess") from error

__all__ = ["chess"]
