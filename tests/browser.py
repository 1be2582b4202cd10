# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its DevTools protocol over tornado's websocket client."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

from tornado.websocket import WebSocketClientConnection, websocket_connect
from watching import closed

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOUND = next((path for name in NAMES if (path := shutil.which(name))), None)
MISSING = "no Chromium: make check-browser installs it (as root), or: apt-get install chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
]


class Browser:
    """One tab. What its pages complain of is kept in `complaints`."""

    def __init__(self, width: int = 1440, height: int = 1180):
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count(1)
        self._size = width, height
        self.complaints: list[str] = []
        self.requested: list[str] = []

    def __enter__(self) -> Self:
        assert FOUND is not None, MISSING
        self._process = subprocess.Popen(
            [FOUND, *FLAGS, f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._socket: WebSocketClientConnection = self._loop.run_until_complete(
                self._connect(time.monotonic() + 30)
            )
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.resize(*self._size)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_socket"):
            self._loop.run_until_complete(self._leave())
        self._loop.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its answer."""
        return self._loop.run_until_complete(self._call(method, parameters))

    def open(self, url: str) -> None:
        """Go there."""
        self.call("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What an expression of JavaScript gives on the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = 20.0) -> Any:
        """The value of an expression, once it is true: what it asks for may not be there yet."""
        until = time.monotonic() + seconds
        tried = f"(() => {{ try {{ return {script} }} catch {{ return null }} }})()"
        while not (found := self.value(tried)):
            assert time.monotonic() < until, f"in {seconds} s never true: {script}"
            self._loop.run_until_complete(asyncio.sleep(0.1))
        return found

    def resize(self, width: int, height: int) -> None:
        """The tab's size in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: str) -> None:
        """Dark or light."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def screenshot(self, path: Path) -> None:
        """The tab as it looks, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    async def _connect(self, until: float) -> WebSocketClientConnection:
        said = Path(self._folder) / "DevToolsActivePort"
        while not (said.exists() and said.read_text().strip()):
            assert time.monotonic() < until, "Chromium did not start"
            assert self._process.poll() is None, "Chromium ended"
            await asyncio.sleep(0.05)
        port = said.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            (page,) = [one for one in json.load(answer) if one["type"] == "page"]
        return await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=1 << 27)

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(message))
        while True:
            text = await asyncio.wait_for(self._socket.read_message(), 30)
            assert text is not None, "Chromium closed the connection"
            told = json.loads(text)
            if told.get("id") == number:
                assert "error" not in told, told["error"]
                return told["result"]
            self._note(told)

    async def _leave(self) -> None:
        with contextlib.suppress(Exception):  # it may have gone already
            await self._call("Browser.close", {})
        await closed(self._socket)

    def _note(self, event: dict[str, Any]) -> None:
        """What happens on the page."""
        about = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.complaints.append(str(about["entry"]))
        elif event["method"] == "Network.requestWillBeSent":
            self.requested.append(about["request"]["url"])
        elif event["method"] == "Network.webSocketCreated":
            self.requested.append(about["url"])
