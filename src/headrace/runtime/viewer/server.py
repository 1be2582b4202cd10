# SPDX-License-Identifier: Apache-2.0
"""The page's server: static files, and one websocket on which everything else comes.

To the page, as JSON: `{type: "run", ...}` once; `{type: "news", moment, curves, ...}` every second,
with what is new since the last; `{type: "player", paused, speed, note}`. Frames are binary: see
`Player`. From the page: `{visible: bool}`, `{paused: bool}`, `{speed: number}`.

It listens on the loopback address alone. Pages of other sites can reach that too, through the
browser: so a request must name this machine as its host, and a websocket must come from our page.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tornado.httpserver
import tornado.web
import tornado.websocket
from setproctitle import setproctitle

from headrace.errors import HeadraceError
from headrace.runtime.viewer.feed import Feed
from headrace.runtime.viewer.player import SHARE, Player
from headrace.runtime.viewer.policy import Policies
from headrace.runtime.viewer.series import Reader
from headrace.train.video import VIDEOS

ADDRESS = "127.0.0.1"
STATIC = Path(__file__).with_name("static")
NEWS_EVERY_S = 1.0
_STOP_LOOKED_FOR_S = 0.2
_LOCAL = ("127.0.0.1", "localhost", "::1")
_POLICY = (
    "default-src 'self'; connect-src 'self' ws:; img-src 'self' blob: data:; frame-ancestors 'none'"
)


def serve(
    run_folder: str | Path,
    port: int = 0,
    *,
    ready: Callable[[str], object] | None = None,
    share: float = SHARE,
    policies: Callable[[], Policies] | None = None,
    stop_asked: Callable[[], bool] = lambda: False,
) -> None:
    """Show a run on a page; `ready` is told its URL. `port` 0: any that is free.

    Until SIGINT, where that is not ignored, or SIGTERM, or `stop_asked`, which is looked at some
    times a second. `share` is how much of a processor playing may take while somebody looks.
    `policies` makes who plays; by default it is the best policy that the run has saved.
    """
    feed = Feed(Path(run_folder))
    with listen(port) as listening:
        setproctitle(f"headrace viewer {feed.run()['name']}")
        asyncio.run(_serve(feed, listening, ready, share, policies, stop_asked))


def listen(port: int) -> socket.socket:
    """Bound to the loopback address."""
    if not 0 <= port < 2**16:
        raise HeadraceError(f"port {port}: give one in 1 .. 65535, or 0 for any that is free")
    try:
        listening = socket.create_server((ADDRESS, port), backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise HeadraceError(f"port {port} is taken; give another, or 0 for any") from None
        raise HeadraceError(f"port {port} cannot be used ({error.strerror})") from error
    listening.setblocking(False)
    return listening


def free_port() -> int:
    """One that was free a moment ago."""
    with listen(0) as listening:
        return listening.getsockname()[1]


async def _serve(
    feed: Feed,
    listening: socket.socket,
    ready: Callable[[str], object] | None,
    share: float,
    policies: Callable[[], Policies] | None,
    stop_asked: Callable[[], bool],
) -> None:
    stopping = asyncio.create_task(_stopped(stop_asked))
    hub = Hub(feed, share, policies)
    server = tornado.httpserver.HTTPServer(application(hub))
    server.add_socket(listening)
    telling = asyncio.create_task(hub.tell())
    if ready is not None:
        ready(f"http://{ADDRESS}:{listening.getsockname()[1]}/")
    ended, _ = await asyncio.wait([telling, stopping], return_when=asyncio.FIRST_COMPLETED)
    server.stop()
    hub.close()
    await server.close_all_connections()
    for task in (telling, stopping):
        task.cancel()
    for task in ended:
        task.result()  # raises what ended it, if it was an error


async def _stopped(stop_asked: Callable[[], bool]) -> None:
    """Returns when it is time to stop."""
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
    while not (stop.is_set() or stop_asked()):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _STOP_LOOKED_FOR_S)


class Hub:
    """Who looks, and what they are told. For the event loop's thread, but for `publish`."""

    def __init__(self, feed: Feed, share: float, policies: Callable[[], Policies] | None):
        self.feed = feed
        self.player = Player(feed.folder, self.publish, share, policies)
        self._loop = asyncio.get_running_loop()
        self._pages: set[Live] = set()
        self.player.start()

    async def tell(self) -> None:
        """Read on in the run's folder, and tell everybody what is new."""
        while True:
            self.feed.refresh()
            for page in list(self._pages):
                page.news(self.feed)
            await asyncio.sleep(NEWS_EVERY_S)

    def enter(self, page: Live) -> None:
        """A page has opened."""
        self._pages.add(page)
        page.say({"type": "run", **self.feed.run()})
        page.say({"type": "player", **self.player.state()})
        page.news(self.feed)
        if self.player.frame is not None:
            page.frame(self.player.frame)

    def leave(self, page: Live) -> None:
        """It has been closed."""
        self._pages.discard(page)
        self.look()

    def look(self) -> None:
        """Somebody has begun or ceased to look."""
        self.player.watch(any(page.visible for page in self._pages))

    def publish(self, what: bytes | dict[str, Any]) -> None:
        """From the player, in its thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended before it
            self._loop.call_soon_threadsafe(self._publish, what)

    def _publish(self, what: bytes | dict[str, Any]) -> None:
        for page in list(self._pages):
            if isinstance(what, dict):
                page.say({"type": "player", **what})
            elif page.visible:
                page.frame(what)

    def close(self) -> None:
        """Say good-bye."""
        self.player.stop()
        for page in list(self._pages):
            page.close(1001, "the viewer has ended")
        self.player.join(2.0)


def application(hub: Hub) -> tornado.web.Application:
    """What answers requests."""
    return tornado.web.Application(
        [
            (r"/live", Live, {"hub": hub}),
            (r"/videos/(step-\d+\.gif)", Files, {"path": str(hub.feed.folder.resolve() / VIDEOS)}),
            (r"/(.*)", Files, {"path": str(STATIC), "default_filename": "index.html"}),
        ],
        websocket_ping_interval=20,
        log_function=lambda handler: None,
    )


class _Local(tornado.web.RequestHandler):
    """Answers only requests that name this machine: a site whose name leads here is refused."""

    def prepare(self) -> None:
        if urlsplit(f"//{self.request.host}").hostname not in _LOCAL:
            self.set_status(403)
            self.finish("this page is for this machine alone\n")


class Files(_Local, tornado.web.StaticFileHandler):
    """The page."""

    def set_extra_headers(self, path: str) -> None:
        """Nothing from elsewhere, nor this within something else; always as installed."""
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Cache-Control", "no-cache")


class Live(_Local, tornado.websocket.WebSocketHandler):
    """One open page. A websocket's origin must be the host it asks: tornado checks that."""

    def initialize(self, hub: Hub) -> None:
        """Nothing has been told yet."""
        self._hub = hub
        self._reader = Reader()
        self._told: dict[str, Any] = {}
        self._sending: asyncio.Task[None] | None = None
        self.visible = False

    def open(self, *_: str, **__: str) -> None:
        """Welcome."""
        self.set_nodelay(True)
        self._hub.enter(self)

    def on_close(self) -> None:
        """Good-bye."""
        self._hub.leave(self)

    def on_message(self, message: str | bytes) -> None:
        """What the page's buttons say. What is not understood is passed over."""
        try:
            said = json.loads(message)
        except ValueError:
            return
        if not isinstance(said, dict):
            return
        if isinstance(said.get("visible"), bool):
            self.visible = said["visible"]
            self._hub.look()
        paused, speed = said.get("paused"), said.get("speed")
        if isinstance(paused, bool) or isinstance(speed, int | float):
            self._hub.player.control(
                paused if isinstance(paused, bool) else None,
                float(speed) if isinstance(speed, int | float) else None,
            )

    def news(self, feed: Feed) -> None:
        """What this page has not been told."""
        news: dict[str, Any] = {"type": "news", "curves": self._reader.news(feed.curves)}
        told = {
            "moment": feed.moment(),
            "processes": feed.processes(),
            "videos": feed.videos(),
            "events": [{"time": event.time, "text": event.text} for event in feed.events],
        }
        news |= {name: value for name, value in told.items() if self._told.get(name) != value}
        self._told = told
        if len(news) > 2 or news["curves"]:
            self.say(news)

    def say(self, message: dict[str, Any]) -> None:
        """As JSON."""
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            self.write_message(json.dumps(message))

    def frame(self, frame: bytes) -> None:
        """Unless the one before is still on its way: a slow page misses some."""
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send(frame))

    async def _send(self, frame: bytes) -> None:
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            await self.write_message(frame, binary=True)
