# SPDX-License-Identifier: Apache-2.0
"""headrace.load: what was written, mapped; what is damaged, named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.cli import main
from headrace.collect.dataset import arrays_of, batch_of

JOB: dict[str, Any] = {"num_envs": 6, "steps": 25, "seed": 1, "max_episode_steps": 20}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "data"
    command = "collect Chess-v0 --num-envs 6 --steps 25 --seed 1 --set max_episode_steps=20"
    assert main([*command.split(), "--batches", "4", "--out", str(out)]) == 0
    return out


def test_a_sequence_of_batches(folder: Path) -> None:
    data = headrace.load(folder)
    assert len(data) == 4
    assert data.manifest["environment"] == "Chess-v0"
    assert data.manifest["seed"] == 1
    data.verify()
    with headrace.make_collector("Chess-v0", **JOB) as source:
        for number, batch in enumerate(data):
            want, got = arrays_of(source.collect()), arrays_of(batch)
            assert got.keys() == want.keys() == data.fields.keys()
            for name, array in want.items():
                assert got[name].dtype == array.dtype == data.fields[name]["dtype"]
                assert got[name].tobytes() == array.tobytes(), (number, name)
                assert not got[name].flags.writeable or not got[name].size
            assert isinstance(batch.obs, np.memmap)
            assert batch.next_obs().shape == batch.obs.shape
    assert data[-1].obs.tobytes() == data[3].obs.tobytes()
    assert [len(batch.reward) for batch in data[1:3]] == [25, 25]
    with pytest.raises(IndexError):
        data[4]


def test_batches_survive_their_names() -> None:
    spec = headrace.spec("CartPole-v1")
    network = headrace.MlpPolicy(spec, (4,))
    batch = headrace.collect(
        spec, num_envs=3, steps=5, policy=network.policy("numpy"), params=network.init()
    )
    arrays = arrays_of(batch)
    assert "extras.value" in arrays
    again = arrays_of(batch_of(arrays))
    assert again.keys() == arrays.keys()
    assert all(again[name] is arrays[name] for name in arrays)
    assert batch_of(arrays).mask is None


def test_damage_is_named(folder: Path) -> None:
    shard = folder / "shard-00000002.npz"
    good = shard.read_bytes()
    data = headrace.load(folder)

    shard.write_bytes(good[:-100])
    assert str(shard) in refusal(lambda: data[2])
    assert "is damaged" in refusal(lambda: list(data))

    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    shard.write_bytes(flipped)
    assert f"{shard} is damaged: its checksum" in refusal(data.verify)

    shard.write_bytes(good[:200] + bytes(len(good) - 200))
    assert f"{shard} is damaged" in refusal(lambda: data[2])

    shard.unlink()
    assert f"{shard} is missing" in refusal(lambda: data[2])
    assert f"{shard} is missing" in refusal(lambda: headrace.load(folder))
    shard.write_bytes(good)
    headrace.load(folder).verify()


def test_folders_that_hold_none(folder: Path, tmp_path: Path) -> None:
    assert "holds no experience" in refusal(lambda: headrace.load(tmp_path))
    assert "holds no experience" in refusal(lambda: headrace.load(tmp_path / "nowhere"))
    manifest = folder / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text[: len(text) // 2])
    assert "is damaged" in refusal(lambda: headrace.load(folder))
    manifest.write_text(text.replace('"format": 1', '"format": 7'))
    assert "this version reads format 1" in refusal(lambda: headrace.load(folder))
