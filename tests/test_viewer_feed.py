# SPDX-License-Identifier: Apache-2.0
import json
from itertools import pairwise

import pytest
from recorded_run import metrics, status, write_run

from headrace.errors import HeadraceError
from headrace.runtime.status import StatusWriter
from headrace.runtime.viewer.feed import Feed
from headrace.runtime.viewer.series import Reader, Series


def test_a_curve_stays_small_and_keeps_its_course():
    curve = Series(limit=100)
    for i in range(10_000):
        curve.add(i, i / 10, float(i))
        assert len(curve.points) < 100
    steps = [step for step, _, _ in curve.points]
    assert steps == sorted(steps)
    assert steps[0] < 300
    assert steps[-1] > 9_700
    gaps = {b - a for a, b in pairwise(steps)}
    assert len(gaps) == 1, "evenly spaced"


def test_what_is_no_number_is_left_out():
    curve = Series()
    for value in (None, float("nan"), float("inf"), 1.0):
        curve.add(1, 1.0, value)
    assert curve.points == [(1, 1.0, 1.0)]


@pytest.mark.parametrize("every", [1, 7, 64])
def test_a_reader_has_the_curve_whenever_it_asks(every):
    curves = {"a": Series(limit=32)}
    reader, have, edition = Reader(), [], None
    for i in range(200):
        curves["a"].add(i, i, i)
        if i % every == 0:
            for news in reader.news(curves).values():
                if news["edition"] != edition:
                    have, edition = [], news["edition"]
                have.extend(news["points"])
            assert have == curves["a"].points
    assert reader.news(curves) == reader.news({}) or every > 1
    assert reader.news({}) == {}


def test_all_of_a_recorded_run(tmp_path):
    feed = Feed(write_run(tmp_path / "run", seconds=60))
    feed.refresh()
    moment = feed.moment()
    assert moment is not None
    assert moment["state"] == "finished"
    assert moment["ring_capacity"] == 1_000_000
    assert {"sampling", "update", "update_frames", "evaluation"} == set(moment["rates"])
    expected = status(60, 0)
    assert moment["rates"]["sampling"] == pytest.approx(expected.rates.sampling)
    for name in ("sampling", "update_frames", "ring_fill", "staleness_max", "loss/policy"):
        assert len(feed.curves[name].points) == 60, name
    evaluations = feed.curves["eval_return"].points
    assert [seconds for _, seconds, _ in evaluations] == [5.0 * i for i in range(1, 13)]
    assert feed.curves["train_return"].points[-1][2] == pytest.approx(expected.train_return, 1e-4)
    assert [one["role"] for one in feed.processes()].count("sampler") == 2
    assert {one["count"] for one in feed.processes() if one["role"] == "sampler"} == {2}
    assert [event.text for event in feed.events] == [event.text for event in expected.events]


def test_a_run_that_wrote_metrics_alone(tmp_path):
    folder = write_run(tmp_path / "run", seconds=30, with_status=False, mode="compiled")
    feed = Feed(folder)
    feed.refresh()
    moment = feed.moment()
    assert moment is not None
    assert moment["state"] == "running"
    assert moment["env_steps"] == status(30, 0).env_steps
    assert moment["rates"]["evaluation"] is None
    assert moment["rates"]["update"] == pytest.approx(status(30, 0).rates.update)
    assert len(feed.curves["sampling"].points) == 30
    assert feed.processes() == []
    (folder / "result.json").write_text("{}")
    assert feed.moment()["state"] == "finished"  # pyright: ignore[reportOptionalSubscript]


def test_what_is_new_is_read_and_half_a_line_is_not(tmp_path):
    folder = write_run(tmp_path / "run", seconds=10, state="running")
    feed = Feed(folder)
    feed.refresh()
    feed.refresh()
    assert len(feed.curves["loss/value"].points) == 10
    text = json.dumps(metrics(status(11, 0), evaluated=False))
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(text[:40])
        file.flush()
        feed.refresh()
        assert len(feed.curves["loss/value"].points) == 10
        file.write(text[40:] + "\nnonsense\n")
    feed.refresh()
    assert len(feed.curves["loss/value"].points) == 11
    StatusWriter(folder).write(status(11, 0), keep=True)
    feed.refresh()
    assert len(feed.curves["sampling"].points) == 11


def test_a_resumed_run_is_read_anew(tmp_path):
    folder = write_run(tmp_path / "run", seconds=40, with_status=False)
    feed, reader = Feed(folder), Reader()
    feed.refresh()
    first = reader.news(feed.curves)["loss/value"]
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    draft = folder / "draft"
    draft.write_text("".join(lines[:20]))
    draft.replace(folder / "metrics.jsonl")
    feed.refresh()
    again = reader.news(feed.curves)["loss/value"]
    assert again["edition"] != first["edition"]
    assert again["points"] == first["points"][:20]  # pyright: ignore[reportIndexIssue]


def test_a_run_that_fell_silent(tmp_path):
    folder = write_run(tmp_path / "run", seconds=10, state="running")
    StatusWriter(folder).write(status(9, began=0.0))  # long ago
    feed = Feed(folder)
    feed.refresh()
    assert feed.moment()["state"] == "silent"  # pyright: ignore[reportOptionalSubscript]


def test_a_run_that_has_only_begun(tmp_path):
    folder = write_run(tmp_path / "run", seconds=0)
    (folder / "metrics.jsonl").unlink()
    feed = Feed(folder)
    feed.refresh()
    assert feed.moment() is None
    assert feed.run()["name"] == "run"
    assert feed.run()["config"]["hyper_parameters.learning_rate"] == "0.0003"


def test_no_run(tmp_path):
    with pytest.raises(HeadraceError, match="it has no config"):
        Feed(tmp_path)
    with pytest.raises(HeadraceError, match="does not exist"):
        Feed(tmp_path / "nowhere")
