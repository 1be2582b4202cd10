# SPDX-License-Identifier: Apache-2.0
"""The tuner, on an environment and a network so small that it takes seconds."""

import pytest

from headrace.runtime.run import TUNED, make_plan, should_tune
from headrace.runtime.tuner import Choice, _fitting, applied, tune
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
