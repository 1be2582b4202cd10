# SPDX-License-Identifier: Apache-2.0
"""Randomness: the right distributions, and nothing that says anything about anything else."""

import numpy as np
import pytest
from scipy import stats
from states import fields, make

import headrace

DEFINITIONS = ("native", "array")
SIGNIFICANT = 1e-4
STARTS = {
    "CartPole-v1": [(-0.05, 0.05)] * 4,
    "Pendulum-v1": [(-np.pi, np.pi), (-1.0, 1.0)],
}


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("name", STARTS)
def test_starts_are_uniform_and_independent(name: str, definition: str) -> None:
    """As Gymnasium's; no component, neighbour or episode says anything about another."""
    count = 20_000
    envs = make(name, count, definition)
    episodes = []
    for seed in (0, None, None, 1):
        envs.reset(seed=seed)
        episodes.append(fields(name, envs).astype(np.float64))
    for state in episodes:
        for values, (low, high) in zip(state, STARTS[name], strict=True):
            assert low - 1e-6 <= values.min() < values.max() <= high + 1e-6
            assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > SIGNIFICANT
    columns = [values for state in episodes for values in state]
    columns += [np.roll(values, 1) for values in episodes[0]]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / np.sqrt(count)


@pytest.mark.parametrize(("name", "choices"), [("CartPole-v1", 2), ("Memory-v0", 4)])
@pytest.mark.parametrize("rung", ["native-fused", "numpy"])
def test_random_choices_are_uniform_and_independent(name: str, choices: int, rung: str) -> None:
    batch = headrace.collect(name, rung=rung, num_envs=128, steps=500, seed=0)
    action = batch.action.astype(int)
    counts = np.bincount(action.ravel(), minlength=choices)
    assert len(counts) == choices
    assert stats.chisquare(counts).pvalue > SIGNIFICANT
    for one, other in (
        (action[1:], action[:-1]),
        (action[8:], action[:-8]),
        (action[:, 1:], action[:, :-1]),
    ):
        pairs = np.bincount((one * choices + other).ravel(), minlength=choices**2)
        assert stats.chisquare(pairs).pvalue > SIGNIFICANT


@pytest.mark.parametrize("rung", ["native-fused", "numpy"])
def test_random_torques_are_uniform_and_independent(rung: str) -> None:
    batch = headrace.collect("Pendulum-v1", rung=rung, num_envs=128, steps=500, seed=0)
    action = batch.action[:, :, 0].astype(np.float64)
    assert stats.kstest(action.ravel(), stats.uniform(-2, 4).cdf).pvalue > SIGNIFICANT
    for one, other in ((action[1:], action[:-1]), (action[:, 1:], action[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(one.size)
