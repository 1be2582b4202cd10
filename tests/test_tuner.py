# SPDX-License-Identifier: Apache-2.0
"""The tuner, on an environment and a network so small that it takes seconds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from headrace.runtime import tuner
from headrace.runtime.run import TUNED, make_plan, should_tune
from headrace.runtime.tuner import Choice, Trial, _fitting, applied, tune
from headrace.train.config import environment
from headrace.train.files import read_json
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of


def a_plan(folder, **given):
    small = {"hidden": (8,), "batch_size": 32, "largest_batch": 64, "preset": "none"}
    given = small | given
    config = resolve(
        "Pendulum-v1", algo="sac", mode="async", preset=given.pop("preset"), given=given
    )
    algorithm = make_algorithm_of(config, environment(config))
    return make_plan(config, folder, algorithm, algorithm.acting(algorithm.init(0)))


@pytest.mark.parametrize(
    ("batch", "frames", "updates"), [(256, 0, 8), (256, 50_000, 32), (8192, 50_000, 1)]
)
def test_a_dispatch_takes_a_moment(batch, frames, updates):
    assert _fitting(batch, frames) == updates


def test_what_is_given_is_not_tuned(tmp_path):
    everything = {"samplers": 1, "envs_per_sampler": 4, "updates_per_dispatch": 8}
    assert not should_tune(a_plan(tmp_path, **everything))
    assert not should_tune(a_plan(tmp_path, tune=False))
    assert not should_tune(a_plan(tmp_path, lock_step=True))
    assert should_tune(a_plan(tmp_path, samplers=1))


class _Nobody:
    """Samplers that need not be there."""

    def __init__(self, *_):
        self.channels = SimpleNamespace(counters=SimpleNamespace(sampled=lambda: 1000))

    def begun(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.parametrize("busy", [(), (3,), (2, 3)])
def test_a_busy_moment_does_not_decide(tmp_path, monkeypatch, busy):
    """The third batch is the best; measurements `busy` are slowed down by somebody else."""
    true = {256: 100.0, 512: 150.0, 1024: 180.0, 2048: 120.0}
    plan = a_plan(tmp_path, batch_size=256, largest_batch=2048, updates_per_dispatch=8)
    plan = replace(plan, config=replace(plan.config, algorithm=type(plan.config.algorithm)()))
    search = tuner._Search(plan, lambda text: None)
    made = []

    def updates(updater, running, samplers, envs, batch, count):
        made.append(batch)
        slow = 0.5 if len(made) in busy else 1.0
        return Trial(samplers, envs, batch, count, 1e4, slow * true[batch])

    monkeypatch.setattr(tuner, "Samplers", _Nobody)
    monkeypatch.setattr(search, "_updates", updates)
    best, _ = search._beside(None, 1, 4, 1000.0)
    assert best.batch_size == 1024


def test_a_choice_is_made_shown_kept_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
    said = []
    plan = a_plan(tmp_path, samplers=1, envs_per_sampler=4)
    choice = tune(plan, said.append)
    assert (choice.samplers, choice.envs) == (1, 4)
    assert choice.batch_size == 32  # another than the algorithm's own is a given one
    assert choice.trials
    assert all(trial.frames and trial.sampling for trial in choice.trials)
    assert len(said) == len(choice.trials) + 1
    tuned = applied(plan, choice)
    assert (tuned.samplers, tuned.envs, tuned.updates) == (1, 4, choice.updates)
    again = tune(plan, said.append)
    assert again == choice
    assert again.cached
    assert Choice.from_json(choice.to_json()) == choice
    (kept,) = (tmp_path / "cache" / "tune").iterdir()
    assert read_json(kept)["batch_size"] == 32
    assert TUNED == "tuned.json"
