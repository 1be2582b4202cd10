# SPDX-License-Identifier: Apache-2.0
"""Messages between a process and one of its workers: a kind, and often an object."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

JOB, READY, DONE, FAILED = b"j", b"r", b"d", b"f"
"""Kinds of messages besides those of the job: the first to the worker, the others from it."""

_HEADER = struct.Struct("=cQ")


class Message(NamedTuple):
    """A kind of one byte, and what goes with it."""

    kind: bytes
    payload: Any


def frame(kind: bytes, payload: Any = None) -> bytes:
    """The bytes of a message; made once, they can be sent to many."""
    body = b"" if payload is None else pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(kind, len(body)) + body


class Channel:
    """One end of a pair of sockets. One thread at a time; messages arrive whole and in order."""

    def __init__(self, end: socket.socket, on_silence: Callable[[], None] | None = None):
        """`on_silence` is called where the socket's own time-out passes within `receive`."""
        self._socket = end
        self._recv = end.recv
        self._on_silence = on_silence
        self.send = end.sendall

    def receive(self) -> Message | None:
        """The next message; None where the other end is closed, or its process has ended."""
        header = self._read(_HEADER.size)
        if header is None:
            return None
        kind, size = _HEADER.unpack(header)
        if not size:
            return Message(kind, None)
        body = self._read(size)
        return None if body is None else Message(kind, pickle.loads(body))

    def receive_left(self) -> Message | None:
        """What has already arrived; None if that is not a whole message."""
        self._socket.setblocking(False)
        self._on_silence = None
        try:
            return self.receive()
        except BlockingIOError:
            return None

    def close(self) -> None:
        """Close this end: the other one receives None."""
        self._socket.close()

    def _read(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            try:
                part = self._recv(size)
            except BlockingIOError:
                if self._on_silence is None:
                    raise
                self._on_silence()
                continue
            except ConnectionError:
                return None
            if not part:
                return None
            size -= len(part)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
