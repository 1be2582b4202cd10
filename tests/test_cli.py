# SPDX-License-Identifier: Apache-2.0
"""The command line, as a user runs it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headrace

COMMAND = [sys.executable, "-m", "headrace"]
SHORT = ["--seconds", "0.04", "--repeats", "2", "--num-envs", "16", "--steps", "8"]


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_help_and_version() -> None:
    for arguments in ([], ["--help"]):
        shown = run(*arguments)
        assert shown.returncode == 0
        for command in ("ladder", "envs"):
            assert command in shown.stdout
    assert run("--version").stdout == f"headrace {headrace.__version__}\n"
    for command in ("ladder", "envs"):
        shown = run(command, "--help")
        assert shown.returncode == 0
        assert f"headrace {command}" in shown.stdout
    for option in ("--num-envs", "--fused-steps", "--state-bytes", "--update-seconds", "--plot"):
        assert option in run("ladder", "--help").stdout


def test_envs() -> None:
    shown = run("envs")
    assert shown.returncode == 0
    for line in ("CartPole-v1", "Memory-v0", "Pendulum-v1"):
        assert line in shown.stdout
    assert "gym array native" in shown.stdout
    assert "MountainCar-v0" not in shown.stdout
    assert "MountainCar-v0" in run("envs", "--gymnasium").stdout


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_ladder_with_its_files(tmp_path: Path, suffix: str) -> None:
    table, picture = tmp_path / "ladder.json", tmp_path / f"ladder.{suffix}"
    done = run(
        "ladder", "CartPole-v1", *SHORT, "--rungs", "python,native", "--update-seconds", "0.1",
        "--json", str(table), "--plot", str(picture),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "16 environments × 8 steps" in done.stdout
    assert "[1/2] python, 16 environments: " in done.stderr
    found = json.loads(table.read_text())
    assert [one["rung"] for one in found["measurements"]] == ["python", "native"]
    assert picture.read_bytes()[:4] == (b"\x89PNG" if suffix == "png" else b"<?xm")
    assert sorted(tmp_path.iterdir()) == sorted([table, picture])


def test_any_environment_of_gymnasiums() -> None:
    done = run("ladder", "MountainCar-v0", *SHORT, "--rungs", "python,native", "--set",
               "max_episode_steps=50", "--update-seconds", "0.1")  # fmt: skip
    assert done.returncode == 0
    assert "left out: native: MountainCar-v0 has no native definition" in done.stdout


WRONG = [
    (["ladder", "CartPole-v2"], "unknown environment 'CartPole-v2'; did you mean CartPole-v1"),
    (["ladder", "CartPole-v1", "--rungs", "nativ"], "unknown rung 'nativ'; did you mean native"),
    (["ladder", "CartPole-v1", "--num-envs", "0"], "--num-envs 0: give a whole number"),
    (["ladder", "CartPole-v1", "--num-envs", "1,x"], "--num-envs 1,x: give a whole number"),
    (["ladder", "CartPole-v1", "--steps", "-1"], "steps is -1; it must be a whole number"),
    (["ladder", "CartPole-v1", "--set", "gravity"], "--set gravity: give NAME=VALUE"),
    (["ladder", "CartPole-v1", "--set", "steps=3"], "--set steps: that is --steps"),
    (["ladder", "CartPole-v1", "--plot", "plot.pdf"], "the name must end in .png or .svg"),
    (["ladder", "CartPole-v1", "--json", "no/such/folder/a.json"], "cannot be written"),
    (["ladder", "CartPole-v1", "--json", "."], "that is not a regular file"),
    (["ladder", "Memory-v0", "--rungs", "python"], "no rung of Memory-v0 could be measured"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_mistakes_get_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("headrace: error: ")
    assert list(tmp_path.iterdir()) == []


def test_unknown_commands_and_options() -> None:
    for arguments in (["leader"], ["ladder", "CartPole-v1", "--ste", "3"], ["ladder"]):
        done = run(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_ctrl_c_prints_what_is_done(tmp_path: Path) -> None:
    table = tmp_path / "ladder.json"
    process = subprocess.Popen(
        [*COMMAND, "ladder", "CartPole-v1", "--rungs", "python,numpy,native", "--seconds", "0.2",
         "--repeats", "2", "--num-envs", "4", "--steps", "4", "--json", str(table)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stderr is not None
    while not process.stderr.readline().startswith("[1/"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "python" in out
    assert "interrupted: this is what was measured until then" in out
    found = json.loads(table.read_text())
    assert found["interrupted"]
    assert found["measurements"][0]["rung"] == "python"


def test_a_reader_that_has_seen_enough() -> None:
    done = subprocess.run(
        f"{sys.executable} -m headrace ladder --help | head -1", shell=True, capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "usage" in done.stdout
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
