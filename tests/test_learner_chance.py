"""Normal numbers of updates: their distribution, and that the rarest words are finite."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from headrace.learn import chance


def test_the_outermost_words_give_finite_numbers(monkeypatch):
    outermost = jnp.array([0, 1, 2**31, 2**32 - 2**9, 2**32 - 1], jnp.uint32)
    monkeypatch.setattr(chance, "words", lambda *_: outermost)
    numbers = np.asarray(chance.normals(np.zeros(2), np.uint32(0), chance.ACTION, (5,)))
    assert np.isfinite(numbers).all()
    np.testing.assert_allclose(numbers[0], -numbers[-1])
    assert numbers[-1] > 5


def test_they_are_normal():
    seed = chance.seed_words(3)
    numbers = np.asarray(chance.normals(seed, np.uint32(7), chance.ACTION, (20_000, 2)))
    assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(numbers.T)[0, 1]) < 0.03
    other = np.asarray(chance.normals(seed, np.uint32(8), chance.ACTION, (20_000, 2)))
    assert not np.array_equal(numbers, other)
