# SPDX-License-Identifier: Apache-2.0
"""What an asynchronous run does when something goes wrong: one test a fault."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.errors import HeadraceError, WorkerDiedError
from headrace.report.training import train
from headrace.runtime.child import SAY
from headrace.runtime.crew import Crew, Member
from headrace.runtime.process import Process
from headrace.runtime.shared import SharedMemory
from headrace.runtime.status import StatusReader
from headrace.train import checkpoint

SMALL = """--algo sac --hidden 16 --batch-size 32 --learning-starts 64 --updates-per-dispatch 4
    --samplers 2 --envs-per-sampler 2 --steps 8 --replay-ratio 0.1 --no-tune --replay-size 20000
    --evaluation-every 500 --evaluation-episodes 2 --total-steps 100000000 --preset none
    --no-plot"""
SETTINGS = {
    "algo": "sac", "hidden": (16,), "batch_size": 32, "learning_starts": 64,
    "updates_per_dispatch": 4, "samplers": 1, "envs_per_sampler": 2, "steps": 8,
    "replay_ratio": 0.1, "tune": False, "evaluator": False, "preset": "none", "plot": False,
}  # fmt: skip
ENV = "fault_envs:Quiet"


class RunningRun:
    """`headrace train` in a process of its own, and what its folder says."""

    def __init__(self, folder, *arguments, env=ENV, command=("train",)):
        self.folder, self.reader = folder, StatusReader(folder)
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        what = [env, "--mode", "async", "--out", str(folder), *SMALL.split()]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *command, *(what if command == ("train",) else ()),
             *arguments],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )  # fmt: skip
        self.pids = set()

    def wait_for(self, condition, seconds=60.0):
        """The first status of which this is true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.reader.newest()
            if status is not None:
                self.pids |= {one.pid for one in status.processes if one.pid}
                if condition(status):
                    return status
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        out = ""
        if self.process.poll() is not None:
            out = self.process.stdout.read()
        raise AssertionError(f"not so within {seconds} s: {self.reader.newest()}\n{out}")

    def nobody_left(self, seconds=5.0):
        """Whether all processes have ended within this time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.01)
            if not any(_alive(pid) for pid in self.pids):
                return True
            time.sleep(0.05)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def _alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def member(status, role, index=0):
    return next(one for one in status.processes if (one.role, one.index) == (role, index))


def learning(status):
    return status.updates > 20 and status.eval_return is not None and status.rates.sampling > 0


def test_killed_members_are_replaced_and_the_end_of_the_learner_ends_all(tmp_path):
    folder = tmp_path / "run"
    with RunningRun(folder, "--checkpoint-every", "0.5") as run:
        before = run.wait_for(learning)
        title = Path(f"/proc/{member(before, 'sampler', 1).pid}/cmdline").read_bytes()
        assert title.startswith(b"headrace sampler 1 run")
        assert (
            Path(f"/proc/{member(before, 'learner').pid}/cmdline")
            .read_bytes()
            .startswith(b"headrace learner run")
        )
        for role, index in (("sampler", 1), ("evaluator", 0)):
            victim = member(before, role, index).pid
            os.kill(victim, signal.SIGKILL)
            after = run.wait_for(
                lambda s, role=role, index=index: (
                    member(s, role, index).restarts == 1 and member(s, role, index).pid
                )
            )
            assert member(after, role, index).pid != victim
            assert "SIGKILL" in member(after, role, index).reason
            assert any("restarted" in event.text for event in after.events)
        run.wait_for(lambda s: s.updates > after.updates + 20 and s.policy_version)
        run.wait_for(lambda s: any("checkpoint" in event.text for event in s.events))
        os.kill(member(after, "learner").pid, signal.SIGKILL)
        assert run.nobody_left()
        assert run.process.returncode == 2
        out = run.process.stdout.read()
        assert "the learner killed by SIGKILL" in out
        assert f"headrace resume {folder}" in out
    status = run.reader.newest()
    assert status.state == "failed"
    done = checkpoint.read(sorted((folder / "checkpoints").iterdir())[-1]).meta
    assert done["update_frames"] == 32 * done["updates"]
    with RunningRun(folder, str(folder), command=("resume",)) as resumed:
        status = resumed.wait_for(lambda s: s.updates > done["updates"] + 20 and s.live)
        assert status.env_steps > done["env_steps"]
        os.kill(resumed.process.pid, signal.SIGKILL)  # the supervisor
        assert resumed.nobody_left()


def test_ctrl_c_once_leaves_a_checkpoint_and_videos(tmp_path):
    folder = tmp_path / "run"
    drawn = ("--definition", "gym", "--set", "max_episode_steps=10", "--video-every", "0.5")
    with RunningRun(folder, *drawn, env="Pendulum-v1") as run:
        run.wait_for(lambda s: learning(s) and list(folder.glob("videos/step-*.gif")))
        os.killpg(run.process.pid, signal.SIGINT)  # as a terminal does: all of them
        assert run.nobody_left(15)
        assert run.process.returncode == 130
    assert run.reader.newest().state == "finished"
    (path,) = (folder / "checkpoints").iterdir()
    assert checkpoint.read(path).meta["updates"] > 20
    assert json.loads((folder / "result.json").read_text())["ending"] == "interrupted"


def test_ctrl_c_twice_ends_at_once(tmp_path):
    with RunningRun(tmp_path / "run") as run:
        run.wait_for(lambda s: member(s, "learner").pid and member(s, "sampler").pid)
        os.killpg(run.process.pid, signal.SIGINT)
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.nobody_left()
        assert run.process.returncode == 130


def test_an_environment_that_raises_is_restarted_and_what_it_said_is_kept(tmp_path):
    mark = tmp_path / "mark"
    run = train(
        "fault_envs:RaisesOnce", mode="async", out=tmp_path / "run", total_steps=20_000,
        options={"mark": str(mark)}, **SETTINGS,
    )  # fmt: skip
    assert run.env_steps >= 20_000
    (kept,) = (tmp_path / "run" / "failures").iterdir()
    assert "the environment's own mistake" in kept.read_text()
    newest = StatusReader(tmp_path / "run").newest()
    assert newest.state == "finished"
    assert member(newest, "sampler").restarts == 1
    assert "ArithmeticError" in member(newest, "sampler").reason


def test_an_environment_that_always_raises_stops_the_run_with_what_it_said(tmp_path):
    with pytest.raises(WorkerDiedError, match=r"3 times in a row(.|\n)*ArithmeticError: never"):
        train(
            "fault_envs:AlwaysRaises", mode="async", out=tmp_path / "run", failures_in_a_row=3,
            **SETTINGS,
        )  # fmt: skip
    assert len(list((tmp_path / "run" / "failures").iterdir())) == 3


def test_an_environment_that_hangs_is_killed_and_restarted(tmp_path):
    run = train(
        "fault_envs:HangsOnce", mode="async", out=tmp_path / "run", total_steps=20_000,
        silence_limit=3.0, options={"mark": str(tmp_path / "mark")}, **SETTINGS,
    )  # fmt: skip
    assert run.env_steps >= 20_000
    assert "hung" in member(StatusReader(tmp_path / "run").newest(), "sampler").reason


def test_what_a_killed_process_told_is_read_and_its_files_are_closed_once(tmp_path):
    memory = SharedMemory()
    process = Process("headrace test", _tell_and_hang, memory.descriptor, tmp_path / "log",
                      threads=1)  # fmt: skip
    descriptors = process._end.fileno(), process._lifeline
    while not (tmp_path / "log").read_bytes():
        time.sleep(0.01)
    process.kill()
    assert process.ending() == "killed by SIGKILL"
    assert [(one.kind, one.payload) for one in process.messages()] == [(SAY, "last words")]
    process.close()
    others = [os.open(tmp_path, os.O_RDONLY) for _ in range(8)]
    assert set(descriptors) <= set(others)  # they have their numbers now
    process.close()
    process.send(SAY)
    assert not list(process.messages())
    for other in others:
        os.close(other)  # was not closed by the one that had its number before
    memory.close()


def test_what_was_told_just_before_the_end_is_heard(tmp_path):
    memory, said = SharedMemory(), []
    crew = Crew("run", tmp_path, memory.descriptor, silence_limit=60.0, failures_in_a_row=5,
                after_death=lambda member: None, say=said.append)  # fmt: skip
    crew.start(Member("viewer", 0, lambda life: _tell, None))
    first = crew.members[0].process
    assert first.wait(10.0)
    crew.look_after()
    assert next((one.role, told.payload) for one, told in crew.messages()) == ("viewer", "told")
    assert crew.members[0].process is not first
    assert "restarted" in said[0]
    crew.close()
    memory.close()


def _tell(memory, line):
    line.tell(SAY, "told")


def _tell_and_hang(memory, line):
    line.tell(SAY, "last words")
    print("told", flush=True)
    time.sleep(3600)


def test_losses_that_are_no_numbers_stop_the_run(tmp_path):
    with pytest.raises(HeadraceError, match="learning broke down"):
        train("fault_envs:GivesNan", mode="async", out=tmp_path / "run", **SETTINGS)


def test_memory_that_is_not_there_is_an_error_before_anything_starts(tmp_path):
    with pytest.raises(HeadraceError, match="replay-size"):
        train(ENV, mode="async", out=tmp_path / "run", **SETTINGS | {"replay_size": 10**12})
    assert not (tmp_path / "run" / "logs").exists()


def test_samplers_do_without_jax():
    program = (
        "import sys, headrace.runtime.child, headrace.runtime.sampler, headrace.runtime.evaluator;"
        "from headrace.train.resolve import resolve; from headrace.train.config import environment;"
        "from headrace.train.session import make_algorithm_of;"
        "config = resolve('Pendulum-v1', algo='sac', mode='async');"
        "make_algorithm_of(config, environment(config)).policy('numpy');"
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
