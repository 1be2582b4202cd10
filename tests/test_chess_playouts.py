# SPDX-License-Identifier: Apache-2.0
"""Playouts are the games that collectors play, with nothing shown."""

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.envs.chess import playouts
from headrace.envs.native import NativeDefinition, max_threads


def test_they_end_as_often_as_the_games_of_a_collector() -> None:
    with headrace.make_collector(
        "Chess-v0", rung="native-fused", num_envs=40, steps=700, seed=5, observation="compact"
    ) as source:
        ends = len(source.collect().final_obs)
    assert ends > 40
    assert playouts(40, 700, seed=5) == ends
    assert playouts(40, 700, seed=5, threads=2) == ends


@pytest.mark.parametrize("name", ["Chess-v0", "ChessVsRandom-v0", "Memory-v0", "CartPole-v1"])
def test_states_are_those_of_a_collector(name: str) -> None:
    with headrace.make_collector(
        name, rung="native-fused", num_envs=9, steps=300, seed=7, max_episode_steps=80
    ) as source:
        before = source.save()["state"]
        source.collect()
        wanted = source.save()["state"]
    assert (before != wanted).any()
    native = NativeDefinition(name, {})
    for threads in (1, max_threads()):
        state = before.copy()
        for clock, steps in ((0, 1), (1, 99), (100, 200)):
            native.kernel.advance(
                state,
                num_envs=9,
                steps=steps,
                clock=clock,
                max_episode_steps=80,
                threads=threads,
            )
        np.testing.assert_array_equal(state, wanted)


def test_refusals() -> None:
    for arguments, words in (((0, 5), "games is 0"), ((5, 0), "plies is 0")):
        assert words in refusal(lambda given=arguments: playouts(*given))
    assert "threads is 0" in refusal(lambda: playouts(1, 1, threads=0))
