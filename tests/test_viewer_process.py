# SPDX-License-Identifier: Apache-2.0
"""The viewer as a process of an asynchronous run."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from watching import Frame, on_page


def status(folder):
    try:
        return json.loads((folder / "status.json").read_text())
    except FileNotFoundError:
        return {"events": [], "processes": []}


def wait_for(what, seconds=40.0):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.05)
    return found


def addresses(folder):
    said = " ".join(event["text"] for event in status(folder)["events"])
    return re.findall(r"shown at http://127\.0\.0\.1:(\d+)/", said)


def process(folder):
    """The viewer's, where there is one."""
    found = [one for one in status(folder)["processes"] if one["role"] == "viewer" and one["pid"]]
    return found[0] if found else None


async def watched(page):
    """The first frame of whoever has the samplers' weights."""
    await page.say({"visible": True})
    return await page.hear_until(
        lambda one: isinstance(one, Frame) and one.caption["policy"].startswith("current policy"),
        30,
    )


def test_it_shows_the_weights_of_the_run_is_restarted_and_ends_with_it(tmp_path):
    folder = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "headrace",
        "train",
        "CartPole-v1",
        "--mode",
        "async",
        "--view",
    ]
    command += ["--no-tune", "--samplers", "1", "--out", str(folder), "--quiet"]
    with subprocess.Popen([*command, "--total-steps", "1000000000", "--until", "501"]) as run:
        try:
            (port,) = wait_for(lambda: addresses(folder))
            first = wait_for(lambda: process(folder))
            assert on_page(int(port), watched).image.shape == (400, 600, 3)
            os.kill(first["pid"], signal.SIGKILL)
            again = wait_for(
                lambda: (one := process(folder)) and one["restarts"] == 1 and one["pid"] and one
            )
            wait_for(lambda: len(addresses(folder)) == 2)
            assert addresses(folder) == [port, port], "where its pages look for it"
            on_page(int(port), watched)
        finally:
            run.send_signal(signal.SIGINT)
        assert run.wait(30) in (0, 130)
    assert status(folder)["state"] == "finished"
    for pid in (first["pid"], again["pid"]):
        assert not Path(f"/proc/{pid}").exists()
