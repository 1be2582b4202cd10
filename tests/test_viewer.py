# SPDX-License-Identifier: Apache-2.0
import asyncio
import http.client
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import setproctitle
from recorded_run import save_policy, status, write_run
from tornado.httpclient import HTTPClientError
from watching import Frame, Page, Watching, on_page

from headrace.errors import HeadraceError
from headrace.runtime.viewer.server import listen, serve


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "CartPole-ppo", seconds=60)


@pytest.fixture(scope="module")
def viewer(folder):
    with Watching(folder) as watching:
        yield watching


def get(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def test_it_listens_on_the_loopback_address_alone(viewer):
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, port = line.split()[1].split(":")
        if int(port, 16) == viewer.port and line.split()[3] == "0A":
            assert address == "0100007F"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", viewer.port), timeout=5)


def test_the_page_and_what_it_needs(viewer):
    status, page, headers = get(viewer.port, "/")
    assert status == 200
    assert b"<canvas" in page
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    for name in ("app.js", "chart.js", "format.js", "screen.js", "style.css", "wheel.svg"):
        status, text, _ = get(viewer.port, f"/{name}")
        assert status == 200
        assert b"https:" not in text, "nothing comes from elsewhere"
    for path in ("/nothing.js", "/../server.py", "/%2e%2e/server.py"):
        assert get(viewer.port, path)[0] in (403, 404)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(viewer, host):
    for path in ("/", "/app.js", "/live"):
        assert get(viewer.port, path, Host=host)[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:8000"])
def test_names_of_this_machine_are_not(viewer, host):
    assert get(viewer.port, "/", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://evil.example", "Host": "evil.example"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_another_page_may_not_listen(viewer, headers):
    async def nothing(page):
        raise AssertionError("it was let in")

    with pytest.raises(HTTPClientError, match="403"):
        on_page(viewer.port, nothing, **headers)


def test_what_a_page_is_told(viewer):
    async def talk(page):
        run = await page.hear_until(lambda one: one["type"] == "run")
        player = await page.hear_until(lambda one: one["type"] == "player")
        news = await page.hear_until(lambda one: one["type"] == "news")
        return run, player, news

    origin = f"http://127.0.0.1:{viewer.port}"
    run, player, news = on_page(viewer.port, talk, Origin=origin)
    assert run["name"] == "CartPole-ppo"
    assert (run["env"], run["algo"], run["mode"]) == ("CartPole-v1", "ppo", "async")
    assert run["goal"] == {"total_steps": 8_000_000, "until": 475.0}
    assert player["speed"] == 1.0
    expected = status(60, 0)
    assert news["moment"]["env_steps"] == expected.env_steps
    assert news["moment"]["rates"]["update_frames"] == pytest.approx(expected.rates.update_frames)
    assert len(news["processes"]) == 5
    assert "sampler 1 was killed" in news["events"][1]["text"]
    for name in ("sampling", "update", "update_frames", "evaluation", "ring_fill"):
        assert len(news["curves"][name]["points"]) == 60, name


def test_the_agent_plays_while_somebody_looks(viewer):
    async def talk(page: Page):
        assert await page.frames_within(1.0) == [], "nobody sees the page"
        await page.say({"visible": True})
        frames = await page.frames(12)
        await page.say({"paused": True})
        state = await page.hear_until(lambda one: isinstance(one, dict) and one.get("paused"))
        await asyncio.sleep(0.3)
        assert len(await page.frames_within(1.0)) <= 5, "those that were on their way"
        await page.say({"paused": False, "speed": 4})
        await page.hear_until(lambda one: isinstance(one, dict) and one.get("speed") == 4)
        return frames, state, await page.frames(3)

    frames, state, after = on_page(viewer.port, talk)
    assert {frame.image.shape for frame in frames} == {(400, 600, 3)}
    changes = [np.abs(np.int16(a.image) - b.image).max() for a, b in zip(frames, after * 4)]  # noqa: B905
    assert min(changes) > 50
    captions = [frame.caption for frame in frames]
    assert captions[0]["policy"].startswith("no policy yet")
    assert all(caption["return"] == caption["step"] for caption in captions), "CartPole's rewards"
    assert state["speed"] == 1.0


def test_nonsense_is_passed_over(viewer):
    async def talk(page):
        for nonsense in ("", "{", "[]", "1", '{"speed": "x"}', '{"speed": 1e9}', '{"visible": 3}'):
            await page.say(nonsense)
        await page.say({"visible": True})
        return await page.frames(1)

    assert on_page(viewer.port, talk)


def test_its_process_is_named(viewer):
    title = Path(f"/proc/{viewer.process.pid}/cmdline").read_text()
    assert title.strip("\0 ").startswith("headrace viewer CartPole-ppo")


def test_the_saved_policy_plays_without_jax(tmp_path):
    folder = write_run(tmp_path / "run", seconds=3)
    save_policy(folder, seed=0, env_steps=2048)

    with Watching(folder) as watching:

        def by(policy):
            return lambda one: isinstance(one, Frame) and one.caption["policy"] == policy

        async def talk(page):
            await page.say({"visible": True})
            await page.hear_until(by("best policy, after 2,048 steps"))
            save_policy(folder, seed=1, env_steps=4096)
            await page.hear_until(by("best policy, after 4,096 steps"))

        on_page(watching.port, talk)
        loaded = Path(f"/proc/{watching.process.pid}/maps").read_text()
    assert "numpy" in loaded
    assert "jaxlib" not in loaded


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(folder, number):
    with Watching(folder) as watching:

        async def talk(page):
            await page.say({"visible": True})
            await page.frames(2)
            ended = await asyncio.to_thread(watching.end, number)
            while await page.hear() is not None:
                pass
            return ended, page.close_code

        (code, seconds), close_code = on_page(watching.port, talk)
    assert code == 0
    assert seconds < 3
    assert close_code == 1001
    assert watching.rest == "", "nothing is complained of"


def test_it_ends_when_its_supervisor_says_so(folder):
    """As a process of a run: told by a function, in whatever thread, and deaf to SIGINT."""
    told = threading.Event()
    urls: queue.Queue[str] = queue.Queue()
    arguments = {"ready": urls.put, "stop_asked": told.is_set}
    title = setproctitle.getproctitle()
    thread = threading.Thread(target=serve, args=(folder,), kwargs=arguments)
    thread.start()
    try:
        port = int(urls.get(timeout=10).rstrip("/").rsplit(":", 1)[1])
        assert get(port, "/")[0] == 200
    finally:
        told.set()
        thread.join(5)
        setproctitle.setproctitle(title)
    assert not thread.is_alive()
    assert [one.name for one in threading.enumerate()].count("player") == 0


def test_a_killed_viewer_leaves_nothing(folder):
    with Watching(folder) as watching:
        watching.end(signal.SIGKILL)
    with Watching(folder, "--port", str(watching.port)) as again:
        assert get(again.port, "/")[0] == 200


def watch(*arguments):
    command = [sys.executable, "-m", "headrace", "watch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_bad_input_is_one_line(folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            ([tmp_path], "has no config.json"),
            ([tmp_path / "nowhere"], "does not exist"),
            ([folder, "--port", port], f"port {port} is taken; give another, or 0 for any"),
            ([folder, "--port", 70_000], "port 70000: give one in 1 .. 65535"),
        ]
        for arguments, said in cases:
            result = watch(*arguments)
            assert result.returncode == 2
            assert said in result.stderr
            assert result.stderr.count("\n") == 1
            assert result.stdout == ""
        with pytest.raises(HeadraceError, match="is taken"):
            listen(port)


def note_of(folder, **environment):
    """What the page says instead of showing the agent."""

    async def talk(page):
        await page.say({"visible": True})
        told = await page.hear_until(
            lambda one: (
                isinstance(one, Frame)
                or (one["type"] == "player" and one["note"] not in ("", "getting ready"))
            )
        )
        assert not isinstance(told, Frame)
        return told["note"]

    with Watching(folder, **environment) as watching:
        return on_page(watching.port, talk)


def test_an_environment_that_cannot_be_drawn(tmp_path):
    note = note_of(write_run(tmp_path / "run", seconds=3, env="Memory-v0"))
    assert note == "Memory-v0 cannot be drawn: it has no Gymnasium definition"


def test_no_display(tmp_path):
    pytest.importorskip("mujoco")
    folder = write_run(tmp_path / "run", seconds=3, env="InvertedPendulum-v5")
    note = note_of(folder, MUJOCO_GL="glfw", DISPLAY="")
    assert "InvertedPendulum-v5 cannot be drawn" in note
    assert "MUJOCO_GL=egl" in note
    assert "\n" not in note


def test_a_live_run_is_followed(tmp_path):
    from headrace.runtime.status import StatusWriter

    folder = write_run(tmp_path / "run", seconds=5, state="running")
    with Watching(folder) as watching:

        async def talk(page):
            await page.hear_until(lambda one: one["type"] == "news")
            later = status(9, began=time.time() - 9)
            StatusWriter(folder).write(later)
            return await page.hear_until(lambda one: one["type"] == "news" and "moment" in one, 5)

        news = on_page(watching.port, talk)
    assert news["moment"]["state"] == "running"
    assert news["moment"]["env_steps"] == status(9, 0).env_steps
    assert [len(curve["points"]) for name, curve in news["curves"].items()] == [1] * len(
        news["curves"]
    )
