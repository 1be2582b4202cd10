# SPDX-License-Identifier: Apache-2.0
"""`headrace watch` as a process, and a page's side of its websocket."""

import asyncio
import contextlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from PIL import Image
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

T = TypeVar("T")


class Watching:
    """A viewer of a run folder; interrupted at the end of the `with` block."""

    def __init__(self, folder: Path, *arguments: str, **environment: str):
        self._command = [sys.executable, "-m", "headrace", "watch", str(folder), *arguments]
        self._environment = os.environ | environment

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://127.0.0.1:" in line, line + self.process.stdout.read()
        self.url = line.split(": ")[1].split()[0]
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.rest, _ = self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise

    def end(self, number: signal.Signals) -> tuple[int, float]:
        """Send a signal; the exit code, and the seconds until the end."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(10), time.monotonic() - began


class Frame(NamedTuple):
    caption: dict[str, Any]
    image: np.ndarray


def frame_of(data: bytes) -> Frame:
    """As the page takes it apart."""
    (length,) = struct.unpack(">I", data[:4])
    image = Image.open(io.BytesIO(data[4 + length :]))
    assert image.format == "JPEG"
    return Frame(json.loads(data[4 : 4 + length]), np.asarray(image))


class Page:
    """What a page hears on its websocket, and says."""

    def __init__(self, socket: WebSocketClientConnection):
        self._socket = socket

    async def say(self, message: Any) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        await self._socket.write_message(text)

    async def hear(self, seconds: float = 10.0) -> dict[str, Any] | Frame | None:
        """One message; None: the viewer has closed the connection."""
        data = await asyncio.wait_for(self._socket.read_message(), seconds)
        if data is None:
            return None
        return frame_of(data) if isinstance(data, bytes) else json.loads(data)

    async def hear_until(self, wanted: Callable[[Any], bool], seconds: float = 15.0) -> Any:
        """The first message of the kind."""
        async with asyncio.timeout(seconds):
            while True:
                heard = await self.hear(seconds)
                assert heard is not None, "the viewer closed the connection"
                if wanted(heard):
                    return heard

    async def frames(self, count: int) -> list[Frame]:
        return [await self.hear_until(lambda one: isinstance(one, Frame)) for _ in range(count)]

    async def frames_within(self, seconds: float) -> list[Frame]:
        found = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    found += await self.frames(1)
        except TimeoutError:
            return found

    @property
    def close_code(self) -> int | None:
        return self._socket.close_code


def on_page(port: int, talk: Callable[[Page], Awaitable[T]], **headers: str) -> T:
    """Open the page's websocket, and do this with it."""

    async def go() -> T:
        request = HTTPRequest(f"ws://127.0.0.1:{port}/live", headers=headers)
        socket = await websocket_connect(request)
        try:
            return await talk(Page(socket))
        finally:
            await closed(socket)

    return asyncio.run(go())


async def closed(socket: WebSocketClientConnection) -> None:
    """Close it, and wait until it is: the loop may end before the other side has answered."""
    socket.close()
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            while await socket.read_message() is not None:
                continue
