# SPDX-License-Identifier: Apache-2.0
"""`headrace train`, `resume` and `eval`, as a user runs them; and what a run leaves behind."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import headrace
from headrace import HeadraceError
from headrace.cli import main
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.policy import PolicyKey
from headrace.train import checkpoint, trees
from headrace.train.cache import cache_folder
from headrace.train.checkpoint import CHECKPOINTS, Checkpoints
from headrace.train.resolve import resolve

COMMAND = [sys.executable, "-m", "headrace"]
SMALL = ["--num-envs", "8", "--steps", "16", "--hidden", "8", "--epochs", "1", "--minibatches", "2",
         "--evaluation-every", "512", "--evaluation-episodes", "4", "--no-plot"]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _one_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of compiled programs, so that each is compiled once."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HEADRACE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
        **options,
    )  # fmt: skip


def newest(folder: Path) -> checkpoint.Loaded:
    return checkpoint.read(sorted((folder / "checkpoints").glob("*.npz"))[-1])


def same_state(a: Path, b: Path) -> bool:
    ours, theirs = newest(a), newest(b)
    return ours.meta["env_steps"] == theirs.meta["env_steps"] and all(
        ours.arrays[name].tobytes() == theirs.arrays[name].tobytes()
        for name in ours.arrays.keys() | theirs.arrays.keys()
    )


@pytest.fixture(scope="module")
def trained(_one_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run, with all that goes into its folder."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    arguments = [one for one in SMALL if one != "--no-plot"]
    arguments += ["--checkpoint-every", "1e-6", "--keep-checkpoints", "100", "--video"]
    done = run("train", "CartPole-v1", *arguments, "--total-steps", 2048, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == f"CartPole-v1 (ppo, serial, native, seed 0) into {folder}"
    assert lines[1].startswith("512 steps | ")
    assert lines[-1].startswith("done after 2,048 environment steps, ")
    return folder


def test_the_folder_has_everything(trained: Path) -> None:
    names = {path.name for path in trained.iterdir() if "tfevents" not in path.name}
    assert names == {
        "config.json", "metrics.jsonl", "checkpoints", "result.json",
        "model.safetensors", "model.json", "curve.svg", "video.gif",
    }  # fmt: skip
    assert list(trained.glob("events.out.tfevents.*"))
    config = json.loads((trained / "config.json").read_text())
    assert config["num_envs"] == 8
    assert config["hyper_parameters"]["hidden"] == [8]
    assert config["versions"]["jax"]
    picture = ElementTree.parse(trained / "curve.svg")
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}circle")) >= 2
    assert (trained / "video.gif").read_bytes()[:6] == b"GIF89a"


ACT = """
import sys, numpy as np, headrace
policy = headrace.load_policy(sys.argv[1])
one = policy(np.array([0.1, 0.2, 0.1, 0.5], np.float32))
many = policy(np.array([[0.1, 0.2, 0.1, 0.5]] * 3))
assert one.shape == () and many.tolist() == [one] * 3 and many.dtype == np.uint8
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"jax", "jaxlib", "torch", "rich", "matplotlib"}))
"""


def test_a_policy_acts_without_jax(trained: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ACT, str(trained)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_policy_is_that_of_the_run(trained: Path) -> None:
    """By the run's own state, in JAX, instead of by its files."""
    import jax

    from headrace.train.config import config_from_json, environment
    from headrace.train.session import make_trainer
    from headrace.train.trees import filled

    config = config_from_json(json.loads((trained / "config.json").read_text()), "config.json")
    trainer = make_trainer(config, environment(config))
    best = headrace.load_policy(trained)
    loaded = checkpoint.read(trained / "checkpoints" / f"step-{best.card['env_steps']:014}.npz")
    trainer.load_state(filled(trainer.state, loaded.arrays))
    obs = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    key: Any = PolicyKey(None, None)  # pyright: ignore[reportArgumentType]
    policy = trainer.algorithm.policy("jax", deterministic=True)
    action, _ = policy.apply(jax.tree.map(np.asarray, trainer.acting()), obs, None, key)
    assert (np.asarray(action) == best(obs)).mean() > 0.99  # but where both are as good
    trainer.close()


def test_wrong_observations_are_refused(trained: Path) -> None:
    policy = headrace.load_policy(trained)
    with pytest.raises(headrace.HeadraceError, match=r"an observation has shape \(4,\)"):
        policy(np.zeros(5))


def test_eval(trained: Path, tmp_path: Path) -> None:
    told = tmp_path / "scores.json"
    done = run("eval", trained, "--episodes", 5, "--json", told, "--definition", "gym")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CartPole-v1, gym, deterministic, 5 episodes: mean return ")
    scores = json.loads(told.read_text())
    assert len(scores["returns"]) == 5
    assert scores["mean"] == pytest.approx(np.mean(scores["returns"]))
    again = run("eval", trained, "--episodes", 5, "--explore", "--checkpoint", "newest")
    assert "exploring" in again.stdout


def test_a_policy_of_a_checkpoint(trained: Path) -> None:
    for path in Checkpoints(trained / CHECKPOINTS).paths():
        policy = headrace.load_policy(trained, checkpoint=path)
        kept = checkpoint.read(path).arrays
        weights = trees.named(policy.params)
        assert weights
        for name, weight in weights.items():
            np.testing.assert_array_equal(weight, kept[f"learner/{name}"])
    newest = headrace.load_policy(trained, checkpoint="newest")
    np.testing.assert_array_equal(trees.named(newest.params)[name], weights[name])
    with pytest.raises(HeadraceError, match=r"absent\.npz is missing"):
        headrace.load_policy(trained, checkpoint=trained / "absent.npz")


def test_a_runs_policy_collects(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--policy", str(trained), "--num-envs", "4", "--steps", "8", "--batches", "2"]
    assert main(["collect", "CartPole-v1", *arguments, "--out", str(tmp_path / "a")]) == 0
    capsys.readouterr()
    data = headrace.load(tmp_path / "a")
    acting, batch = headrace.load_policy(trained), data[1]
    policy = acting.algorithm.policy("numpy").apply
    for step in range(8):  # the values it noted are those of its parameters
        key: Any = PolicyKey(identify(namespace("numpy"), 4, 0, 0), np.uint32(8 + step))
        action, extras = policy(acting.params, np.array(batch.obs[step]), None, key)
        np.testing.assert_array_equal(action, batch.action[step])
        np.testing.assert_allclose(extras["value"], batch.extras["value"][step], rtol=1e-5)
    message = refused(capsys, "collect", "Pendulum-v1", *arguments, "--out", str(tmp_path / "b"))
    assert "learnt CartPole-v1, whose observation_space is" in message


def test_quiet_says_nothing(tmp_path: Path) -> None:
    done = run("train", "CartPole-v1", *SMALL, "--total-steps", 256, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("CartPole-v1-ppo-")


def killed(folder: Path, how: signal.Signals, *arguments: str) -> tuple[int, str]:
    """A run that is sent a signal once it has written a checkpoint."""
    process = subprocess.Popen(
        [*COMMAND, "train", "CartPole-v1", *arguments, "--out", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    while process.poll() is None and len(list(folder.glob("checkpoints/step-*.npz"))) < 2:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()[0]
    process.send_signal(how)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out


LONG = [*SMALL, "--total-steps", "8192", "--seed", "3", "--checkpoint-every", "0.02"]


@pytest.mark.parametrize("mode", ["serial", "compiled"])
def test_a_killed_run_continues_bit_for_bit(mode: str, tmp_path: Path) -> None:
    whole, parts, flags = tmp_path / "whole", tmp_path / "parts", (*LONG, "--mode", mode)
    assert run("train", "CartPole-v1", *flags, "--quiet", "--out", whole).returncode == 0
    code, _ = killed(parts, signal.SIGKILL, *flags)
    assert code == -signal.SIGKILL
    assert not same_state(whole, parts)
    done = run("resume", parts, "--no-plot")
    assert done.returncode == 0, done.stderr
    assert same_state(whole, parts)
    model = "model.safetensors"
    assert (whole / model).read_bytes() == (parts / model).read_bytes()


def test_ctrl_c_stops_with_a_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out = killed(folder, signal.SIGINT, *LONG, "--total-steps", "10000000")
    assert code == 130
    assert "Traceback" not in out
    assert "stopped after" in out
    assert f"headrace resume {folder} continues" in out
    told = json.loads((folder / "result.json").read_text())
    assert told["ending"] == "interrupted"
    assert newest(folder).meta["env_steps"] == told["env_steps"]
    steps = str(told["env_steps"] + 1024)
    done = run("resume", folder, "--total-steps", steps, "--no-plot")
    assert done.returncode == 0, done.stderr
    assert "at its end" in run("resume", folder).stderr
    assert json.loads((folder / "config.json").read_text())["total_steps"] == int(steps)


def test_a_file_of_settings_and_flags_before_it(trained: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    file = trained / "config.json"
    done = run("train", "CartPole-v1", "--config", file, "--seed", "7", "--no-plot", "--out", again)
    assert done.returncode == 0, done.stderr
    before, now = (json.loads((one / "config.json").read_text()) for one in (trained, again))
    assert now == before | {"seed": 7}
    toml = tmp_path / "small.toml"
    toml.write_text("num_envs = 8\nsteps = 16\n[hyper_parameters]\nhidden = [8]\n")
    config = resolve("CartPole-v1", config_file=toml, given={"steps": 32})
    assert (config.settings.num_envs, config.settings.steps) == (8, 32)
    assert config.algorithm.hidden == (8,)


def test_help_knows_the_algorithm() -> None:
    shown = run("train", "Pendulum-v1", "--algo", "td3", "--help").stdout
    assert "--exploration-noise" in shown
    assert "--clip" not in shown
    assert "--clip" in run("train", "--help").stdout
    for command in ("train", "resume", "eval"):
        assert run(command, "--help").returncode == 0


def test_from_python(tmp_path: Path) -> None:
    result = headrace.train(
        "CartPole-v1", out=tmp_path / "run", num_envs=8, steps=16, hidden=(8,), epochs=1,
        minibatches=2, total_steps=512, evaluation_every=512, evaluation_episodes=4, plot=False,
    )  # fmt: skip
    assert result.env_steps == 512
    assert result.best is not None
    more = headrace.resume(result.folder, total_steps=1024, plot=False)
    assert more.env_steps == 1024
    with pytest.raises(headrace.HeadraceError, match="unknown setting 'lerning_rate'; did you"):
        headrace.train("CartPole-v1", lerning_rate=1)


WRONG = [
    (["train", "CartPole-v1", "--algo", "sac"], "sac is for continuous actions; those of"),
    (["train", "Pendulum-v1", "--algo", "dqn"], "those of Pendulum-v1 are continuous: --algo ppo"),
    (["train", "CartPole-v1", "--algo", "pp"], "unknown algorithm 'pp'; did you mean ppo?"),
    (["train", "CartPole-v3"], "unknown environment 'CartPole-v3'; did you mean CartPole-v1"),
    (["train", "CartPole-v1", "--preset", "x"], "unknown preset 'x'"),
    (["train", "CartPole-v1", "--minibatches", "7"], "do not divide into 7 minibatches"),
    (["train", "CartPole-v1", "--learning-rate", "-1"], "learning_rate is -1.0; it must be more"),
    (["train", "CartPole-v1", "--total-steps", "0"], "total_steps is 0; it must be a whole"),
    (["train", "CartPole-v1", "--mode", "compiled", "--definition", "gym"], "or serial"),
    (["train", "CartPole-v1", "--mode", "compiled", "--learner", "host"], "learns by XLA"),
    (["train", "Pendulum-v1", "--algo", "sac", "--learner", "host"], "--learner xla"),
    (["train", "Chess-v0", "--learner", "host"], "dense layers"),
    (["train", "Memory-v0", "--definition", "gym"], "has only: array, native"),
    (["train", "CartPole-v1", "--set", "seed=3"], "--set seed: that is --seed"),
    (["train", "CartPole-v1", "--config", "no.json"], "--config no.json: cannot be read"),
    (["resume", "nothing"], "nothing does not exist; give the folder that headrace train wrote"),
    (["resume", "."], ". is no run: it has no config.json"),
    (["eval", "r", "--opponent", "greedy"], "r does not exist"),
    (["eval", "."], ". is no run: it has no config.json"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_mistakes_get_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    (line,) = errors.splitlines()
    assert line.startswith("headrace: error: ")
    return line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"lerning_rate": 1}', "unknown setting 'lerning_rate'; did you mean learning_rate"),
        ('{"learning_rate": "x"}', "learning_rate is 'x'; it must be of type float"),
        ('{"num_envs": 1.5}', "num_envs is 1.5; it must be of type int"),
        ('{"network": "cnn"}', "network is 'cnn'; it must be one of auto"),
        ("[1]", "it must be one object with settings in it"),
        ("{", "Expecting property name"),
    ],
)
def test_mistakes_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert message in refused(capsys, "train", "CartPole-v1", "--config", str(file))


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """No file may grow beyond a few blocks, as if there were no more: the checkpoint is too large.

    Compiled programs are read from the cache of the other tests and not written to it, where one
    that was cut off would stay.
    """
    limited = "ulimit -f 4; trap '' XFSZ; exec "
    command = f"{limited} {sys.executable} -m headrace train CartPole-v1 {' '.join(SMALL)}"
    done = subprocess.run(
        ["bash", "-c", f"{command} --total-steps 512 --out run"],
        capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False,
        env=os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(cache_folder()),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1e9",
        },
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("headrace: ")]
    assert "cannot be written (File too large)" in line
    assert not list((tmp_path / "run").rglob(".draft-*"))


def test_a_terminal_shows_the_run(tmp_path: Path) -> None:
    """In a terminal of its own, 100 columns wide."""
    terminal, other_end = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "100", "LINES": "40", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [*COMMAND, "train", "CartPole-v1", *SMALL, "--total-steps", "2048", "--mode", "compiled"],
        stdin=other_end, stdout=other_end, stderr=other_end, cwd=tmp_path,
        env=os.environ | settings,
    )  # fmt: skip
    os.close(other_end)
    shown = b""
    with contextlib.suppress(OSError):  # the other end has closed
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    assert process.wait(60) == 0
    text = shown.decode()
    for word in ("CartPole-v1 · ppo · compiled · native · seed 0", "compiling", "evaluation",
                 "environment steps/s", "updates/s", "update frames/s", "generation | update",
                 "2,048 of 2,048 steps", "loss/policy", "done after 2,048"):  # fmt: skip
        assert word in text, text
    assert any(0x2800 < ord(letter) < 0x2900 for letter in text)  # the curve
