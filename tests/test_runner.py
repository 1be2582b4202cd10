# SPDX-License-Identifier: Apache-2.0
"""The loop around a trainer, with the smallest trainer there is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal
from run_parts import NumberTrainer, a_config, a_run, a_runner

from headrace.train import checkpoint, metrics, trees
from headrace.train.run_folder import RunFolder, read_config
from headrace.train.watch import Moment, Silent


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [line for line in metrics.read(folder / metrics.LINES) if name in line]


def test_it_ends_with_the_last_step(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert (run.ending, run.env_steps, run.updates, run.solved) == ("total-steps", 200, 20, False)
    scored = lines(tmp_path, "evaluation/return")
    assert [line["env_steps"] for line in scored] == [50, 100, 150, 200]
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["ending"] == "total-steps"
    assert told["best"]["mean"] == max(line["evaluation/return"] for line in scored)


def test_an_evaluation_comes_at_the_end_in_any_case(tmp_path: Path) -> None:
    run = a_run(tmp_path, evaluation_every=1000, total_steps=35)
    assert run.env_steps == 40
    assert run.last is not None
    assert run.last.env_steps == 40


def test_calls_stop_at_evaluations(tmp_path: Path) -> None:
    trainer = NumberTrainer()
    a_run(tmp_path, trainer, total_steps=2000, evaluation_every=330)
    done = np.cumsum(trainer.calls)
    assert trainer.calls[0] == 1
    assert max(trainer.calls) > 8
    assert set(range(33, 200, 33)) <= set(done.tolist())
    assert done[-1] == 200


def test_until(tmp_path: Path) -> None:
    whole = a_run(tmp_path / "whole")
    means = [line["evaluation/return"] for line in lines(whole.folder, "evaluation/return")]
    target = max(means[:3])
    run = a_run(tmp_path / "until", until=target)
    assert run.ending == "until"
    assert run.solved
    assert run.env_steps == 50 * (means.index(target) + 1)


def test_a_time_limit(tmp_path: Path) -> None:
    run = a_run(tmp_path, time_limit=0.1, total_steps=10**9, evaluation_every=10**9)
    assert run.ending == "time-limit"
    assert 0.1 <= run.seconds < 5
    assert run.last is not None


class Interrupting(Silent):
    """Asks to stop once so many steps are done."""

    def __init__(self, after: int):
        self.after, self.asked = after, False
        self.said: list[str] = []

    def moment(self, moment: Moment) -> None:
        self.asked = self.asked or moment.env_steps >= self.after

    def say(self, text: str) -> None:
        self.said.append(text)


def stopped(path: Path, after: int, **settings: Any) -> Any:
    watch = Interrupting(after)
    return a_run(path, watch=watch, options={"stop_asked": lambda: watch.asked}, **settings)


def resumed(path: Path, **settings: Any) -> tuple[Any, NumberTrainer, list[str]]:
    trainer, watch = NumberTrainer(seed=5), Interrupting(10**9)
    with RunFolder(path) as folder:
        runner = a_runner(a_config(**settings), folder, trainer, watch)
        runner.continue_from(folder.checkpoints(3).newest(watch.say))
        return runner.run(), trainer, watch.said


@pytest.mark.parametrize("after", [1, 60, 100, 130])
def test_a_resumed_run_ends_as_one_that_was_not_stopped(tmp_path: Path, after: int) -> None:
    trainer = NumberTrainer()
    whole = a_run(tmp_path / "whole", trainer)
    first = stopped(tmp_path / "parts", after)
    assert first.ending == "interrupted"
    assert first.env_steps < 200
    second, continued, _ = resumed(tmp_path / "parts")
    assert (second.env_steps, second.updates) == (whole.env_steps, whole.updates)
    ours, theirs = trees.named(trainer.state), trees.named(continued.state)
    assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    for name in ("evaluation/return", "loss/number"):
        both = [
            {line["env_steps"]: line[name] for line in lines(run.folder, name)}
            for run in (whole, second)
        ]
        common = set(both[0]) & set(both[1])
        assert {50, 100, 150, 200} <= set(both[0]) & set(both[1])
        assert all(both[0][step] == both[1][step] for step in common)
    assert second.best is not None
    assert whole.best is not None
    assert second.best.mean == whole.best.mean
    assert (second.folder / "model.safetensors").read_bytes() == (
        whole.folder / "model.safetensors"
    ).read_bytes()


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path: Path) -> None:
    stopped(tmp_path / "a", 130, checkpoint_every=1e-6)
    paths = RunFolder(tmp_path / "a").checkpoints(3).paths()
    assert len(paths) > 1
    paths[-1].write_bytes(paths[-1].read_bytes()[:-300])
    run, _, said = resumed(tmp_path / "a")
    assert run.env_steps == 200
    assert str(paths[-1]) in said[0]
    assert "damaged" in said[0]


def test_a_run_killed_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    whole = a_run(tmp_path / "whole")
    first = stopped(tmp_path / "parts", 60)
    for path in (first.folder / "checkpoints").iterdir():
        path.unlink()
    with RunFolder(first.folder) as folder:
        runner = a_runner(a_config(), folder)
        runner.continue_from(None)
        again = runner.run()
    name = "evaluation/return"
    assert [line[name] for line in lines(again.folder, name)] == [
        line[name] for line in lines(whole.folder, name)
    ]


def test_what_is_not_a_number_stops_and_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    trainer = NumberTrainer(breaks_at=12)
    message = refusal_of(lambda: a_run(tmp_path, trainer, checkpoint_every=1e-6))
    assert "loss/number is nan after 1" in message
    assert "try a smaller learning rate" in message
    last = RunFolder(tmp_path).checkpoints(3).paths()[-1]
    assert message.endswith(f"the last good checkpoint is {last}")
    loaded = checkpoint.read(last)
    assert loaded.meta["env_steps"] <= 120
    assert np.isfinite(loaded.arrays["params/number"])


def refusal_of(act: Any) -> str:
    with pytest.raises(ValueError, match="learning broke down") as caught:
        act()
    return str(caught.value)


def test_nothing_good_yet(tmp_path: Path) -> None:
    message = refusal_of(lambda: a_run(tmp_path, NumberTrainer(breaks_at=0)))
    assert message.endswith("there is no checkpoint yet")


def test_folders(tmp_path: Path) -> None:
    a_run(tmp_path / "run")
    assert "holds a run already; headrace resume" in refusal(lambda: a_run(tmp_path / "run"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    assert "holds something else (thesis.tex)" in refusal(lambda: a_run(tmp_path / "other"))
    assert "is no run: it has no config.json" in refusal(lambda: read_config(tmp_path / "other"))
    assert "does not exist" in refusal(lambda: read_config(tmp_path / "nothing"))
    with RunFolder(tmp_path / "run"):
        assert "is being written by another process" in refusal(
            lambda: RunFolder(tmp_path / "run").__enter__()
        )
    (tmp_path / "run" / "config.json").write_text("{")
    assert "is damaged" in refusal(lambda: read_config(tmp_path / "run"))
