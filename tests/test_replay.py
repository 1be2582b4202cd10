"""The ring, the transitions that go into it, and the numbers that learners draw."""

import jax
import numpy as np
import optax
import pytest
from learner_numpy import assert_trees_close, discrete_spec, transitions

from headrace.envs.array.namespace import namespace
from headrace.learn import adam, chance
from headrace.learn.algorithm import Rollout
from headrace.learn.replay import Layout
from headrace.learn.transitions import transitions as from_rollout


def numbered(first, count):
    """Transitions whose reward is their number."""
    batch = transitions(discrete_spec(masked=True), count, first)
    return batch._replace(reward=np.arange(first, first + count, dtype=np.float32))


def layout():
    return Layout(jax.tree.map(lambda rows: rows[0], numbered(0, 1)))


def kept(ring, rows):
    """The numbers that a ring holds, in its own order."""
    return rows.unpack(ring.numbers, ring.raw).reward[: int(ring.size)]


def test_rows_keep_every_field():
    rows, batch = layout(), numbered(0, 20)
    got = rows.unpack(*rows.pack(batch))
    for name in rows.fields:
        assert getattr(got, name).dtype == getattr(batch, name).dtype
        np.testing.assert_array_equal(getattr(got, name), getattr(batch, name))


@pytest.mark.parametrize("capacity", [12, 10])
def test_wraps_around(capacity):
    """In one piece where batches fit evenly, and across the end where not."""
    rows = layout()
    ring, insert = rows.empty(capacity, 0), jax.jit(rows.insert)
    for number in range(7):
        ring = insert(ring, numbered(4 * number, 4))
        written = 4 * (number + 1)
        assert ring.size == min(written, capacity)
        assert ring.position == written % capacity
        newest = np.arange(max(written - capacity, 0), written)
        np.testing.assert_array_equal(np.sort(kept(ring, rows)), newest)
        np.testing.assert_array_equal(kept(ring, rows)[newest % capacity], newest)


def test_too_large_a_batch():
    with pytest.raises(ValueError, match="9 transitions do not fit into a ring of 8"):
        layout().insert(layout().empty(8, 0), numbered(0, 9))


def test_sampling_is_uniform_over_what_is_there():
    rows = layout()
    ring = rows.insert(rows.empty(16, 1), numbered(0, 10))
    sample = jax.jit(rows.sample, static_argnums=1)
    first, batch = sample(ring, 5000)
    _, again = sample(ring, 5000)
    _, other = sample(first, 5000)
    np.testing.assert_array_equal(batch.reward, again.reward)
    assert np.mean(np.asarray(batch.reward) == other.reward) < 0.2
    counts = np.bincount(np.asarray(batch.reward, int), minlength=16)
    assert not counts[10:].any()
    assert ((counts[:10] - 500) ** 2 / 500).sum() < 27.9  # chi-squared, 9 degrees, 0.999
    want = numbered(0, 10)
    for name in rows.fields:  # whole rows, not fields of different ones
        of_row = getattr(want, name)[np.asarray(batch.reward, int)]
        np.testing.assert_array_equal(getattr(batch, name), of_row)


def test_noise_is_normal():
    noise = np.ravel(chance.normals(chance.seed_words(2**40 + 1), np.uint32(0), 17, (40_000, 5)))
    assert np.isfinite(noise).all()
    for power, want in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert (noise**power).mean() == pytest.approx(want, abs=0.05)
    assert np.mean(np.abs(noise) > 1.96) == pytest.approx(0.05, abs=0.003)


def test_noise_of_every_word_is_finite(monkeypatch):
    ends = np.array([0, 511, 2**31 - 1, 2**31, 2**32 - 512, 2**32 - 1], np.uint32)
    monkeypatch.setattr(chance, "words", lambda *_: jax.numpy.asarray(ends))
    noise = np.asarray(chance.normals(chance.seed_words(0), np.uint32(0), 17, (6,)))
    assert np.isfinite(noise).all()
    assert (np.diff(noise) >= 0).all()
    np.testing.assert_allclose(noise, -noise[::-1], rtol=1e-5, atol=1e-6)
    assert 5.1 < noise[-1] < 5.4


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("steps", [1, 3])
def test_transitions_by_brute_force(library, steps):
    generator = np.random.default_rng(0)
    shape = (7, 5)
    reward = generator.standard_normal(shape).astype(np.float32)
    terminated = generator.random(shape) < 0.2
    truncated = ~terminated & (generator.random(shape) < 0.2)
    number = np.arange(35, dtype=np.float32).reshape(7, 5, 1)
    rollout = Rollout(number, number[..., 0], reward, terminated, truncated, number + 0.5, {})
    if library == "jax":
        rollout = jax.tree.map(jax.numpy.asarray, rollout)
    got = from_rollout(namespace(library), rollout, 0.9, steps)
    np.testing.assert_array_equal(np.ravel(got.obs), np.arange(35))
    np.testing.assert_array_equal(got.action, np.arange(35))
    for t in range(7):
        for env in range(5):
            total, factor, now = 0.0, 1.0, t
            while True:
                total += factor * reward[now, env]
                factor *= 0.9
                over = terminated[now, env] or truncated[now, env]
                if over or now == 6 or now == t + steps - 1:
                    break
                now += 1
            row = 5 * t + env
            assert got.reward[row] == pytest.approx(total, abs=1e-5)
            assert got.discount[row] == pytest.approx(0 if terminated[now, env] else factor)
            assert got.next_obs[row, 0] == number[now, env, 0] + 0.5


def test_adam_is_optax():
    generator = np.random.default_rng(0)
    params = (np.ones((3, 4), np.float32), np.zeros(2, np.float32))
    theirs, optimiser = params, optax.adam(0.01)
    ours, moments, state = params, adam.no_steps(params), optimiser.init(theirs)
    for _ in range(20):
        gradient = jax.tree.map(
            lambda p: generator.standard_normal(p.shape).astype(np.float32), params
        )
        ours, moments = adam.step(ours, moments, gradient, 0.01)
        updates, state = optimiser.update(gradient, state)
        theirs = optax.apply_updates(theirs, updates)
        assert_trees_close(ours, theirs, rtol=1e-4, atol=1e-6)
