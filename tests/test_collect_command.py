# SPDX-License-Identifier: Apache-2.0
"""`headrace collect`: whatever stops it, resuming gives the files of a run that nothing stopped."""

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import headrace
from headrace.cli import main
from headrace.collect import recording
from headrace.collect.recording import Recording

MPIEXEC = str(Path(sysconfig.get_path("scripts")) / "mpiexec")
HEADRACE = [sys.executable, "-m", "headrace", "collect"]
JOB = ["--num-envs", "10", "--steps", "30", "--seed", "3", "--batches", "6"]
CARTPOLE = ["CartPole-v1", "--set", "max_episode_steps=20", *JOB]
WRITES = 2 * (6 * 2 + 2)
"""Of six shards with a state each, and of a manifest before and after: the file and the folder."""
CHESS = ["Chess-v0", "--set", "max_episode_steps=20", *JOB]


def run(job: list[str], out: Path, *more: str) -> int:
    return main(["collect", *job, "--out", str(out), *more])


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def refused(capsys: pytest.CaptureFixture[str], job: list[str], out: Path, *more: str) -> str:
    capsys.readouterr()
    assert run(job, out, *more) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six batches of CartPole that nothing stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert run(CARTPOLE, out) == 0
    return out


def test_what_is_written(whole: Path) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["batches_written"] == manifest["batches"] == 6
    assert manifest["transitions"] == 6 * 300
    assert manifest["fields"]["obs"] == {"dtype": "float32", "shape": [30, 10, 4]}
    assert manifest["fields"]["final_obs"] == {"dtype": "float32", "shape": ["E", 4]}
    names = [f"shard-{number:08}.npz" for number in range(6)]
    assert list(files(whole)) == ["manifest.json", *names, "state-00000006.npz"]
    with headrace.make_collector(
        "CartPole-v1", num_envs=10, steps=30, seed=3, max_episode_steps=20
    ) as source:
        episodes = 0
        for name in names:
            batch = source.collect()
            episodes += len(batch.final_obs)
            with np.load(whole / name) as shard:  # as NumPy reads it, without us
                assert shard["obs"].tobytes() == batch.obs.tobytes()
                assert shard["end_at"].tobytes() == np.asarray(batch.end_at).tobytes()
    assert manifest["episodes"] == episodes > 20


@pytest.mark.parametrize("more", [("--rung", "native"), ("--threads", "1"), ("--ranks", "2")])
def test_the_same_files_however_they_are_made(more: Any, whole: Path, tmp_path: Path) -> None:
    assert run(CARTPOLE, tmp_path / "out", *more) == 0
    assert files(tmp_path / "out") == files(whole)


@pytest.mark.parametrize("job", [CARTPOLE, CHESS])
def test_the_same_files_under_mpiexec(job: list[str], tmp_path: Path) -> None:
    assert run(job, tmp_path / "one") == 0
    command = [MPIEXEC, "-n", "3", *HEADRACE, *job, "--out", str(tmp_path / "three")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "rank 2 is process" in done.stderr
    assert files(tmp_path / "three") == files(tmp_path / "one")
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode != 0
    assert again.stderr.count("holds experience already; --resume") == 1


@pytest.mark.parametrize("step", range(WRITES + 1))
def test_a_stop_at_any_write(
    step: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is gone before the write, or between it and the rename."""
    count = 0
    fsync = os.fsync

    class PowerCut(BaseException):
        pass

    def cut(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count > step:
            raise PowerCut
        fsync(descriptor)

    with monkeypatch.context() as patch, contextlib.suppress(PowerCut):
        patch.setattr(recording.os, "fsync", cut)
        assert run(CARTPOLE, tmp_path / "out") == 0
    assert (count > step) == (step < WRITES)
    if count > step:
        (tmp_path / "out" / ".draft-shard-00000009.npz").write_bytes(b"half")
        assert run([*CARTPOLE, "--resume"], tmp_path / "out") == 0
    assert files(tmp_path / "out") == files(whole)


def test_kills_at_random_moments(whole: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    out, kills = tmp_path / "out", 0
    for number in range(1, 6):
        with subprocess.Popen(
            [*HEADRACE, *CARTPOLE, "--out", str(out), "--resume"], stderr=subprocess.DEVNULL
        ) as process:
            wait_for(out / f"shard-{number - 1:08}.npz", process)
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    assert run([*CARTPOLE, "--resume"], out) == 0
    assert files(out) == files(whole)


def wait_for(path: Path, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("start", [[], [MPIEXEC, "-n", "2"]])
def test_ctrl_c_stops_between_batches(start: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    job = [*CARTPOLE[:-1], "100000"]
    command = [*start, *HEADRACE, *job, "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for(out / "shard-00000002.npz", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130
    assert "--resume continues" in said
    data = headrace.load(out)
    data.verify()
    assert len(data) == data.manifest["batches_written"] >= 3
    written = len(data)
    wanted = [*CARTPOLE[:-1], str(written + 1)]
    assert run([*wanted, "--resume"], out) == 0
    assert run(wanted, tmp_path / "whole") == 0
    assert files(out) == files(tmp_path / "whole")


def test_a_full_disk(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    save, left = np.savez, 7

    def full(*arguments: Any, **arrays: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            full_disk()
        save(*arguments, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr(recording.np, "savez", full)
        message = refused(capsys, CARTPOLE, out)
    assert "cannot be written (No space left on device); its 3 batches are whole" in message
    assert not [name for name in files(out) if "draft" in name]
    assert run([*CARTPOLE, "--resume"], out) == 0
    assert files(out) == files(whole)


def test_refusals(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds experience already" in refused(capsys, CARTPOLE, whole)
    (tmp_path / "thesis.txt").write_text("mine")
    assert "holds something else (thesis.txt)" in refused(capsys, CARTPOLE, tmp_path)
    (tmp_path / "file").write_text("mine")
    assert "cannot be written" in refused(capsys, CARTPOLE, tmp_path / "file" / "out")
    resume = [*CARTPOLE, "--resume"]
    assert "seed 3, not 4" in refused(capsys, resume, whole, "--seed", "4")
    assert "num_envs 10, not 11" in refused(capsys, resume, whole, "--num-envs", "11")
    assert "rung 'native', not 'numpy'" in refused(capsys, resume, whole, "--rung", "numpy")
    assert "6 batches already" in refused(capsys, resume, whole, "--batches", "5")
    new = tmp_path / "new"
    assert "--batches 0" in refused(capsys, CARTPOLE, new, "--batches", "0")
    assert "nor the folder of a run" in refused(capsys, CARTPOLE, new, "--policy", "runs/none")
    assert "--set seed" in refused(capsys, CARTPOLE, new, "--set", "seed=1")
    assert "did you mean CartPole-v1" in refused(capsys, ["CartPole-v7", *JOB], new)
    assert not new.exists()
    with Recording(new, {"num_envs": 1, "steps": 1}, 1, resume=False):
        assert "being written by another" in refused(capsys, CARTPOLE, new)
    assert run(resume, whole) == 0  # there is nothing left to do


def test_what_cannot_begin_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = ["Blackjack-v1", *JOB]
    assert "Tuple spaces are not supported" in refused(capsys, cards, tmp_path / "new")
    (tmp_path / "old").mkdir()
    assert "Tuple spaces" in refused(capsys, [*cards, "--resume"], tmp_path / "old")
    assert "numbered to 2^32" in refused(
        capsys, [*CARTPOLE, "--num-envs", "9999999999"], tmp_path / "new"
    )

    def too_much(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 4 TiB")

    monkeypatch.setattr("headrace.collect.native.HostBuffers", too_much)
    message = refused(capsys, CARTPOLE, tmp_path / "new")
    assert message == "headrace: error: there is too little memory: Unable to allocate 4 TiB"
    monkeypatch.undo()
    monkeypatch.setattr(recording.np, "savez", full_disk)
    message = refused(capsys, CARTPOLE, tmp_path / "new")
    assert message.endswith("new cannot be written (No space left on device)")
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_more_batches_later(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(CARTPOLE, out, "--batches", "2") == 0
    assert run([*CARTPOLE, "--resume"], out) == 0
    assert files(out) == files(whole)
    (out / "shard-00000001.npz").write_bytes(b"short")
    assert run([*CARTPOLE, "--resume"], out) == 2


class Dice(gymnasium.Env[Any, Any]):
    """Episodes that a seed decides, or with `loaded` chance alone."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, loaded: bool = False):
        self._chance = random.SystemRandom() if loaded else None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._roll(), {}

    def step(self, action: Any) -> Any:
        return self._roll(), 1.0, False, False, {}

    def _roll(self) -> Any:
        value = self._chance.random() if self._chance else self.np_random.random()
        return np.array([value], np.float32)


@pytest.mark.usefixtures("own_environments")
def test_gym_environments_are_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    headrace.register("Dice-v0", gym=Dice, max_episode_steps=7)
    job = ["Dice-v0", "--rung", "python", *JOB]
    assert run(job, tmp_path / "whole") == 0
    assert run([*job, "--batches", "3"], tmp_path / "out") == 0
    assert not [name for name in files(tmp_path / "out") if "state" in name]
    assert run([*job, "--resume"], tmp_path / "out") == 0
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    loaded = [*job, "--set", "loaded=true"]
    assert run([*loaded, "--batches", "3"], tmp_path / "loaded") == 0
    message = refused(capsys, [*loaded, "--resume"], tmp_path / "loaded")
    assert "does not repeat itself" in message
