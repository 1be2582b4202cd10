# SPDX-License-Identifier: Apache-2.0
"""Returns against the definitions, written as plain recursions; moments against NumPy's."""

import numpy as np
import pytest

from headrace.envs.array.namespace import namespace
from headrace.learn import normaliser
from headrace.learn.returns import advantages, discounted_sums, n_step, turn_signs

T, N, GAMMA, LAMBDA = 9, 4, 0.9, 0.8


def rows(seed=0):
    chance = np.random.default_rng(seed)
    reward, value, next_value = chance.normal(size=(3, T, N)).astype(np.float32)
    ended = chance.random((T, N)) < 0.25
    terminated = ended & (chance.random((T, N)) < 0.5)
    return reward, value, next_value, terminated, ended & ~terminated


def brute_force(t, env, reward, value, next_value, terminated, truncated, to_play, next_to_play):
    """A = sum over k of (γλ)^k s_1 ... s_k δ_k, as far as the episode goes."""
    total, weight = 0.0, 1.0
    for k in range(t, T):
        sign = 1.0 if to_play[k, env] == next_to_play[k, env] else -1.0
        ahead = 0.0 if terminated[k, env] else sign * next_value[k, env]
        total += weight * (reward[k, env] + GAMMA * ahead - value[k, env])
        if terminated[k, env] or truncated[k, env]:
            break
        weight *= GAMMA * LAMBDA * sign
    return total


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("players", [1, 2])
def test_advantages_are_the_sums_that_define_them(players, library):
    reward, value, next_value, terminated, truncated = rows()
    chance = np.random.default_rng(3)
    to_play = chance.integers(players, size=(T, N)).astype(np.uint8)
    next_to_play = chance.integers(players, size=(T, N)).astype(np.uint8)
    args = reward, value, next_value, terminated, truncated, to_play, next_to_play
    wanted = [[brute_force(t, env, *args) for env in range(N)] for t in range(T)]
    turns = (to_play, next_to_play) if players == 2 else (None, None)
    ns = namespace(library)
    given = map(ns.xp.asarray, (reward, terminated, truncated, value, next_value))
    got = advantages(ns, *given, turn_signs(ns, *turns), GAMMA, LAMBDA)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_by_turns_a_won_game_is_worth_one_to_the_winner_and_minus_one_to_the_loser():
    # Values 0, λ = γ = 1: the last mover wins, so the advantage alternates backwards from 1.
    steps = 6
    reward = np.zeros((steps, 1), np.float32)
    reward[-1] = 1
    terminated = np.zeros((steps, 1), bool)
    terminated[-1] = True
    zero = np.zeros((steps, 1), np.float32)
    to_play = (np.arange(steps) % 2).astype(np.uint8)[:, None]
    ns = namespace("numpy")
    sign = turn_signs(ns, to_play, 1 - to_play)
    got = advantages(ns, reward, terminated, zero > 0, zero, zero, sign, 1.0, 1.0)
    np.testing.assert_allclose(got[:, 0], [-1, 1, -1, 1, -1, 1])


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_discounted_sums_begin_anew_with_each_episode(library):
    reward, _, _, terminated, truncated = rows()
    ended, wanted = terminated | truncated, np.zeros((T, N))
    for env in range(N):
        running = 0.0
        for t in range(T):
            running = GAMMA * running + reward[t, env]
            wanted[t, env] = running
            if ended[t, env]:
                running = 0.0
    ns = namespace(library)
    got = discounted_sums(ns, ns.xp.asarray(reward), ns.xp.asarray(ended), GAMMA)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("library", ["numpy", "jax"])
@pytest.mark.parametrize("steps", [1, 3, 20])
def test_n_step_sums_stop_where_episodes_and_batches_do(library, steps):
    ns = namespace(library)
    reward, _, _, terminated, truncated = rows(5)
    arrays = (ns.xp.asarray(a) for a in (reward, terminated, truncated))
    total, discount, last = map(np.asarray, n_step(ns, *arrays, GAMMA, steps))
    assert total.dtype == discount.dtype == np.float32
    for t in range(T):
        for env in range(N):
            sum_, k = 0.0, 0
            while True:
                sum_ += GAMMA**k * reward[t + k, env]
                k += 1
                over = terminated[t + k - 1, env]
                if over or truncated[t + k - 1, env] or k == steps or t + k == T:
                    break
            assert total[t, env] == pytest.approx(sum_, rel=1e-4, abs=1e-5)
            assert discount[t, env] == pytest.approx(0 if over else GAMMA**k, rel=1e-4)
            assert last[t, env] == t + k - 1


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_moments_of_batches_are_those_of_all_of_them_together(library):
    ns = namespace(library)
    chance = np.random.default_rng(0)
    batches = [chance.normal(3, 2, (n, 4, 5)).astype(np.float32) for n in (7, 1, 30)]
    moments = normaliser.no_moments((5,))
    np.testing.assert_array_equal(
        normaliser.normalise(ns, moments, ns.xp.asarray(batches[0][0])), batches[0][0]
    )
    for batch in batches:
        moments = normaliser.add(ns, moments, ns.xp.asarray(batch))
    whole = np.concatenate([batch.reshape(-1, 5) for batch in batches])
    np.testing.assert_allclose(moments.mean, whole.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(moments.var, whole.var(axis=0), rtol=1e-4)
    away = np.asarray(normaliser.normalise(ns, moments, ns.xp.asarray(whole)))
    np.testing.assert_allclose(away.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(away.std(axis=0), 1, rtol=1e-4)
    assert np.abs(np.asarray(normaliser.normalise(ns, moments, 1e9 * away))).max() == 10
