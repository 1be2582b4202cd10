# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import time

from headrace.runtime.status import (
    HISTORY,
    ProcessStatus,
    Rates,
    RunEvent,
    Status,
    StatusReader,
    StatusWriter,
)


def a_status(**changes):
    status = Status(
        time=time.time(),
        elapsed=1.0,
        state="running",
        env="CartPole-v1",
        algo="ppo",
        mode="async",
        rates=Rates(1.0, 2.0, 3.0, 4.0),
        processes=(ProcessStatus("sampler", 0, 12, "running", 1, "killed by SIGKILL", 0.9),),
        events=(RunEvent(5.0, "sampler 0 restarted"),),
    )
    return dataclasses.replace(status, **changes)


def test_a_status_survives_json():
    status = a_status()
    assert Status.from_json(json.loads(json.dumps(status.to_json()))) == status


def test_a_newer_status_is_read_by_an_older_reader():
    assert Status.from_json({**a_status().to_json(), "added_later": 1}).env == "CartPole-v1"


def test_a_folder_without_a_run(tmp_path):
    reader = StatusReader(tmp_path)
    assert reader.newest() is None
    assert list(reader.more()) == []


def test_history_is_read_on_from_where_it_was_left(tmp_path):
    writer, reader = StatusWriter(tmp_path), StatusReader(tmp_path)
    writer.write(a_status(elapsed=1.0))
    writer.write(a_status(elapsed=1.1))  # too soon for a line of its own
    writer.write(a_status(elapsed=2.5))
    assert [status.elapsed for status in reader.more()] == [1.0, 2.5]
    with (tmp_path / HISTORY).open("a") as file:
        file.write('{"time": 1')  # a line half written
    assert list(reader.more()) == []
    newest = reader.newest()
    assert newest is not None
    assert newest.elapsed == 2.5


def test_history_grows_ever_slower(tmp_path):
    writer = StatusWriter(tmp_path)
    for second in range(4_000):
        writer.write(a_status(elapsed=float(second), processes=(), events=()))
    assert sum(1 for _ in StatusReader(tmp_path).more()) < 3_500


def test_who_has_fallen_silent_is_not_live():
    assert a_status().live
    assert not a_status(time=time.time() - 60).live
    assert not a_status(state="finished").live
