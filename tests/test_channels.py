# SPDX-License-Identifier: Apache-2.0
"""The channels between the processes of a run."""

import random
import time

import numpy as np
import pytest
import ring_writer
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_writer import FIELDS, check_whole, fill, open_channels

import headrace
from headrace.errors import HeadraceError
from headrace.runtime import shared
from headrace.runtime.counters import STEPS, Counters
from headrace.runtime.fields import Field, transition_fields
from headrace.runtime.replay_ring import ReplayRing
from headrace.runtime.rollout_slots import RolloutSlots
from headrace.runtime.shared import SharedMemory
from headrace.runtime.weights import FlatTree, SharedWeights


def new_ring(capacity):
    return ReplayRing(SharedMemory(), FIELDS, capacity)


@given(
    capacity=st.integers(4, 40),
    batches=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=30),
    stopped=st.sets(st.integers(0, 60), max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_a_ring_keeps_the_newest_rows_but_for_busy_slots(capacity, batches, stopped):
    """Against a model: a list of what each slot holds."""
    ring, tickets = new_ring(capacity), 0
    slots, busy = [None] * capacity, set()
    for ticket in sorted(stopped):
        if ring.stop_within_a_row(ticket % capacity, 7):
            busy.add(ticket % capacity)
            slots[ticket % capacity] = None
    numbers = [0] * 4
    for who, count in batches:
        rows = {field.name: field.rows(count) for field in FIELDS}
        fill(rows, who, numbers[who])
        ring.writer(who, rows).write(count)
        first, tickets = tickets, tickets + count
        for i in range(count):
            ticket, newest = first + i, slots[(first + i) % capacity]
            while ticket % capacity in busy or (newest is not None and newest[0] > ticket):
                ticket, tickets = tickets, tickets + 1
                newest = slots[ticket % capacity]
            slots[ticket % capacity] = (ticket, who, numbers[who] + i)
        numbers[who] += count
    found = ring.rows()
    check_whole(found)
    held = [slot[1:] for slot in slots if slot is not None]
    assert list(zip(found["who"].tolist(), found["number"].tolist(), strict=True)) == held
    assert ring.repair(7) == len(busy)


def test_draws_are_uniform_and_depend_on_seed_and_batch_alone():
    ring = new_ring(100)
    rows = {field.name: field.rows(60) for field in FIELDS}
    fill(rows, 1, 0)
    ring.restore(rows)
    once, again = ({field.name: field.rows(6000) for field in FIELDS} for _ in range(2))
    reader, other = ring.reader(once, 6000, seed=3), ring.reader(again, 6000, seed=3, threads=2)
    assert reader.sample(5) == 0
    other.sample(5)
    np.testing.assert_array_equal(once["number"], again["number"])
    counts = np.bincount(once["number"], minlength=60)
    assert ((counts - 100) ** 2 / 100).sum() < 110  # chi-squared with 59 degrees: p of about 1e-4
    other.sample(6)
    assert not np.array_equal(once["number"], again["number"])


def test_draws_are_those_of_the_replay_inside_a_program():
    from headrace.envs.array.namespace import namespace
    from headrace.learn import chance

    ring, seed = new_ring(100), (7 << 32) + 5
    rows = {field.name: field.rows(60) for field in FIELDS}
    fill(rows, 1, 0)
    ring.restore(rows)
    into = {field.name: field.rows(30) for field in FIELDS}
    ring.reader(into, 10, seed).sample(4)
    words = [
        chance.words(
            namespace("numpy"), chance.seed_words(seed), np.uint32(batch), chance.REPLAY, 10
        )
        for batch in (4, 5, 6)
    ]
    np.testing.assert_array_equal(into["number"], np.concatenate(words) % 60)


def test_an_empty_ring_gives_nothing():
    ring = new_ring(8)
    reader = ring.reader({field.name: field.rows(4) for field in FIELDS}, 4, seed=0)
    with pytest.raises(ValueError, match="nothing to draw"):
        reader.sample(0)


def test_killed_writers_cost_their_own_row_and_nothing_else():
    """Several writers, each killed at random moments and started again, in a ring that laps."""
    writers, capacity, kills = 3, 512, 12
    generator = random.Random(5)
    memory = SharedMemory()
    ring, _ = open_channels(memory, capacity, writers)
    lives = iter(range(10_000))
    running = [ring_writer.start(memory, capacity, writers, w, next(lives)) for w in range(writers)]
    into = {field.name: field.rows(256) for field in FIELDS}
    reader, batch = ring.reader(into, 128, seed=1), 0

    def read_for(seconds):
        nonlocal batch
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            reader.sample(batch)
            check_whole(into)
            batch += 1

    try:
        while ring.fill < capacity:
            time.sleep(0.01)
        for _ in range(kills):
            read_for(generator.uniform(0.02, 0.2))
            victim = generator.randrange(writers)
            running[victim].kill()
            running[victim].wait()
            freed = ring.repair(victim)
            assert freed <= 1
            running[victim] = ring_writer.start(memory, capacity, writers, victim, next(lives))
        time.sleep(0.5)
        read_for(0.3)
    finally:
        for process in running:
            process.kill()
            process.wait()
    for writer in range(writers):
        ring.repair(writer)
    rows = ring.rows()
    check_whole(rows)
    seen = set(zip(rows["who"].tolist(), rows["number"].tolist(), strict=True))
    assert len(seen) == len(rows["who"]), "a row is there twice"
    assert len(seen) >= capacity - 2 * writers - ring_writer.BATCH * writers
    assert batch > 50


def test_what_a_killed_writer_had_written_is_all_there():
    """A ring that holds everything: all rows that were counted, and at most one batch more."""
    memory = SharedMemory()
    capacity = 200_000
    ring, counters = open_channels(memory, capacity, 1)
    process = ring_writer.start(memory, capacity, 1, 0, 4)
    while counters.samplers[0].get(STEPS) < 2_000:
        time.sleep(0.002)
    process.kill()
    process.wait()
    ring.repair(0)
    counted = counters.samplers[0].get(STEPS)
    rows = ring.rows()
    check_whole(rows)
    assert counted <= len(rows["number"]) <= counted + ring_writer.BATCH
    np.testing.assert_array_equal(rows["number"], np.arange(len(rows["number"])))


def test_images_stay_bytes_in_a_ring():
    fields = (Field("obs", (3, 5), "|u1"), Field("reward", (), "<f4"), Field("done", (), "|b1"))
    ring = ReplayRing(SharedMemory(), fields, 10)
    rows = {field.name: field.rows(4) for field in fields}
    rows["obs"][...] = np.arange(60).reshape(4, 3, 5)
    rows["reward"][...] = [1, 2, 3, 4]
    rows["done"][...] = [True, False, True, False]
    ring.writer(0, rows).write(3)
    for name, array in ring.rows().items():
        np.testing.assert_array_equal(array, rows[name][:3])


def test_the_fields_of_an_environment():
    sizes = {field.name: field.nbytes for field in transition_fields(headrace.spec("Pendulum-v1"))}
    assert sizes == {"obs": 12, "action": 4, "reward": 4, "discount": 4, "next_obs": 12}


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_weights_arrive_as_they_were_sent(values):
    example = {"layers": [np.zeros(len(values), np.float32)], "one": (np.zeros((), np.float32),)}
    weights = SharedWeights(SharedMemory(), example)
    reader, flat = weights.reader(), FlatTree(example)
    assert not reader.refresh()
    tree = {"layers": [np.array(values, np.float32)], "one": (np.float32(2),)}
    assert weights.publish(flat.fill(tree)) == 1
    params = reader.params
    assert reader.refresh()
    np.testing.assert_array_equal(params["layers"][0], tree["layers"][0])
    assert params["one"][0] == 2
    assert not reader.refresh()


def test_a_slot_goes_back_and_forth():
    fields = (Field("obs", (3,), "<f4"), Field("reward", (), "<f4"))
    slots = RolloutSlots(SharedMemory(), fields, samplers=2, slots=2, steps=4, envs=5)
    for number in range(2):
        slot = slots.empty(1)
        assert slot is not None
        slot.arrays["obs"][...] = number
        slot.hand_over(version=9, number=number)
    assert slots.empty(1) is None
    assert slots.empty(0) is not None
    first, second = slots.full(1)
    assert (first.number, second.number, first.version) == (0, 1, 9)
    assert first.arrays["obs"].shape == (4, 5, 3)
    first.give_back()
    assert slots.empty(1) is first
    assert (second.arrays["obs"] == 1).all()


def test_counters_are_seen_by_all():
    counters = Counters(SharedMemory(), 2)
    counters.samplers[0].add(STEPS, 5)
    counters.samplers[1].add(STEPS, 7)
    assert counters.sampled() == 12
    assert counters.learner.silence() == 0
    counters.learner.beat()
    assert 0 <= counters.learner.silence() < 10


def test_memory_that_is_not_there_is_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(shared, "available", lambda: 300 << 20)
    with pytest.raises(HeadraceError, match=r"replay of 1,000,000 transitions needs 1..\.. MB"):
        new_ring(1_000_000)


def test_a_container_says_what_it_has(tmp_path):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("600000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    assert shared._container(tmp_path) == 500_000
    (tmp_path / "memory.max").write_text("max\n")
    assert shared._container(tmp_path) is None
