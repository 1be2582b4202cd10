# SPDX-License-Identifier: Apache-2.0
"""Scalars in the files that TensorBoard reads, written by hand.

A file is a row of records: length, CRC of the length, an `Event` message, CRC of it. The message is
in protobuf's encoding; of all its fields these are needed:

    Event    { 1: wall_time (double)  2: step (varint)  3: file_version (bytes)  5: Summary }
    Summary  { 1: Value* }            Value { 1: tag (bytes)  2: simple_value (float) }

Importing a library that can do this takes as long as it takes to learn CartPole.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

_DOUBLE, _FLOAT, _VARINT, _BYTES = 1, 5, 0, 2
"""Protobuf's wire types."""


class EventFile:
    """Appends scalars; each `write` is on its way to the file before it returns."""

    def __init__(self, path: Path):
        fresh = not path.exists()
        self._file = path.open("ab", buffering=0)
        if fresh:
            self._append(_number(1, _DOUBLE, time.time()) + _text(3, b"brain.Event:2"))

    def write(self, step: int, when: float, scalars: dict[str, float]) -> None:
        """These values at a step, `when` being seconds since 1970."""
        values = b"".join(
            _text(1, _text(1, tag.encode()) + _number(2, _FLOAT, value))
            for tag, value in scalars.items()
        )
        self._append(
            _number(1, _DOUBLE, when) + _key(2, _VARINT) + _varint(step) + _text(5, values)
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked_crc(length) + event + _masked_crc(event))


def _key(field: int, kind: int) -> bytes:
    return bytes([field << 3 | kind])


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, kind: int, value: float) -> bytes:
    return _key(field, kind) + struct.pack("<d" if kind == _DOUBLE else "<f", value)


def _text(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial
        table.append(byte)
    return table


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
