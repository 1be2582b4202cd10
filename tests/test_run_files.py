# SPDX-License-Identifier: Apache-2.0
"""Trees, checkpoints, logs: what is written comes back, and what is damaged is told."""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from refusals import refusal

from headrace.learn.networks import Dense
from headrace.train import checkpoint, metrics, trees
from headrace.train.checkpoint import Checkpoints
from headrace.train.events import EventFile
from headrace.train.files import write_whole


class Pair(NamedTuple):
    left: Any
    right: Any


TREE = {
    "layers": (Dense(np.ones((2, 3), np.float32), np.zeros(3, np.float32)), ()),
    "pair": Pair(np.arange(3, dtype=np.uint8), [np.array(7, np.int64), None]),
    "nothing": None,
}


def same(a: Any, b: Any) -> bool:
    ours, theirs = trees.named(a), trees.named(b)
    return list(ours) == list(theirs) and all(
        ours[name].dtype == theirs[name].dtype and ours[name].tobytes() == theirs[name].tobytes()
        for name in ours
    )


def test_leaves_have_the_names_of_where_they_are() -> None:
    names = ["layers/0/weight", "layers/0/bias", "pair/left", "pair/right/0"]
    assert list(trees.named(TREE)) == names


def test_a_tree_takes_other_arrays() -> None:
    doubled = {name: array * 2 for name, array in trees.named(TREE).items()}
    filled = trees.filled(TREE, doubled)
    assert type(filled["pair"]) is Pair
    assert filled["nothing"] is None
    assert filled["layers"][1] == ()
    np.testing.assert_array_equal(filled["layers"][0].weight, 2 * TREE["layers"][0].weight)
    wrong = doubled | {"pair/left": np.arange(4, dtype=np.uint8)}
    assert "'pair/left' is uint8[4]; here it is uint8[3]" in refusal(
        lambda: trees.filled(TREE, wrong)
    )
    assert "'more' is not known here" in refusal(
        lambda: trees.filled(TREE, doubled | {"more": np.zeros(1)})
    )
    del doubled["pair/left"]
    assert "'pair/left' is missing" in refusal(lambda: trees.filled(TREE, doubled))


def meta(env_steps: int, **others: Any) -> dict[str, Any]:
    return {"env_steps": env_steps, "score": None, **others}


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path / "c").save(TREE, meta(40, seconds=1.5))
    loaded = checkpoint.read(path)
    assert same(trees.filled(TREE, loaded.arrays), TREE)
    assert loaded.meta["env_steps"] == 40
    assert loaded.meta["seconds"] == 1.5
    with np.load(path) as found:  # anybody can read it
        np.testing.assert_array_equal(found["pair/left"], [0, 1, 2])


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [Checkpoints(tmp_path / name).save(TREE, meta(1)) for name in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=2)
    for step, score in enumerate([1.0, 9.0, None, 3.0, 2.0]):
        store.save(TREE, meta(step, score=score))
    assert [checkpoint.read(path).meta["env_steps"] for path in store.paths()] == [1, 3, 4]


def test_a_file_cut_off_anywhere_is_recognised(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(TREE, meta(1))
    path = store.save(TREE, meta(2))
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        told: list[str] = []
        assert store.newest(told.append).meta["env_steps"] == 1
        assert len(told) == 1
        assert str(path) in told[0]
        assert "is damaged" in told[0]
        assert "the checkpoint before it is used" in told[0]


def test_a_changed_byte_changes_nothing_unseen(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path).save(TREE, meta(2))
    whole = path.read_bytes()
    seen = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            loaded = checkpoint.read(path)
        except ValueError as error:
            assert "is damaged" in str(error)  # noqa: PT017
            seen += 1
            continue
        assert same(trees.filled(TREE, loaded.arrays), TREE)  # a date in the zip, say
        assert loaded.meta["env_steps"] == 2
    assert seen > 0.5 * len(whole)


def test_no_checkpoint_is_whole(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    path = store.save(TREE, meta(1))
    path.write_bytes(b"nothing")
    assert "has no checkpoint that is whole" in refusal(lambda: store.newest(lambda _: None))


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from headrace.train.checkpoint import Checkpoints, read
store = Checkpoints(Path(sys.argv[1]))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store.save({"a": np.zeros(1000)}, {"env_steps": 1, "score": None})
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    store.save({"a": np.zeros(10_000)}, {"env_steps": 2, "score": None})
except ValueError as error:
    print(error)
print([path.name for path in sorted(Path(sys.argv[1]).iterdir())])
print(read(store.paths()[-1]).meta["env_steps"])
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    error, names, step = done.stdout.splitlines()
    assert error.endswith("step-00000000000002.npz cannot be written (File too large)")
    assert names == "['step-00000000000001.npz']"
    assert step == "1"


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(file: Any) -> None:
        file.write(b"new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, fail)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_lines_are_cut_where_a_run_continues(tmp_path: Path) -> None:
    log = metrics.MetricsLog(tmp_path)
    for step in (10, 20, 30):
        log.write(step, step / 10, {"train/return": step * 1.5, "loss/x": float("nan")})
    log.close()
    with (tmp_path / metrics.LINES).open("a") as file:
        file.write('{"env_steps": 40, "sec')  # killed as it wrote
    log = metrics.MetricsLog(tmp_path, continue_from=20)
    log.write(30, 3.5, {"train/return": 0.0})
    log.close()
    lines = list(metrics.read(tmp_path / metrics.LINES))
    assert [line["env_steps"] for line in lines] == [10, 20, 30]
    assert lines[-1]["seconds"] == 3.5
    assert "loss/x" not in lines[0]
    (events,) = tmp_path.glob("events.out.tfevents.*")
    steps = [event.step for event in read_events(events)]
    assert steps == [0, 10, 20, 30]


def read_events(path: Path) -> list[Any]:
    """By tensorboardX's reading of the format, every checksum compared."""
    import struct

    from tensorboardX.crc32c import crc32c
    from tensorboardX.proto import event_pb2

    def masked(data: bytes) -> int:
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    data, out = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        body, data = data[12 : 12 + length], data[12 + length :]
        assert struct.unpack("<I", data[:4])[0] == masked(body)
        data = data[4:]
        out.append(event_pb2.Event.FromString(body))
    return out


def test_events_are_those_that_tensorboard_reads(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.x"
    log = EventFile(path)
    log.write(0, 12.5, {"loss/policy": -0.25})
    log.write(3_000_000_000, 1.8e9, {"train/return": 475.0, "rate/env_steps": 1.5e6})
    log.close()
    first, second, third = read_events(path)
    assert first.file_version == "brain.Event:2"
    assert second.wall_time == 12.5
    assert [(value.tag, value.simple_value) for value in second.summary.value] == [
        ("loss/policy", -0.25)
    ]
    assert third.step == 3_000_000_000
    assert [value.simple_value for value in third.summary.value] == [475.0, 1.5e6]
