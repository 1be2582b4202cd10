# SPDX-License-Identifier: Apache-2.0
"""Resets that are refused, in one clear line; nothing has changed."""

from typing import Any

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.envs.vector.base import HostVectorEnv

DEFINITIONS = ("native", "array")


WRONG_RESETS: list[tuple[dict[str, Any], str]] = [
    ({"seed": -1}, "seed is -1"),
    ({"seed": 1.5}, "seed is 1.5; give a whole number or a list of them"),
    ({"seed": "7"}, "seed is '7'"),
    ({"seed": [1, 2]}, "there are 2 seeds for 3 environments"),
    ({"seed": [1, 2, -3]}, "seed is -3"),
    ({"seed": [1, 2, 0.5]}, "seed is 0.5"),
    ({"options": {"low": 0}}, "CartPole-v1 here has no reset options ['low']"),
    ({"options": {"reset_mask": [True] * 3}}, "reset_mask is [True, True, True]; it must be"),
    ({"options": {"reset_mask": np.ones(2, bool)}}, "reset_mask is bool(2,); it must be"),
    ({"options": {"reset_mask": np.ones(3, int)}}, "reset_mask is int64(3,); it must be"),
    ({"options": {"reset_mask": np.zeros(3, bool)}}, "reset_mask is False everywhere"),
]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(("arguments", "expected"), WRONG_RESETS)
def test_wrong_resets(arguments: dict[str, Any], expected: str, definition: str) -> None:
    envs = headrace.make_vec("CartPole-v1", 3, definition=definition)
    assert isinstance(envs, HostVectorEnv)
    envs.reset(seed=0)
    before = envs.state_dict()
    assert expected in refusal(lambda: envs.reset(**arguments))
    after = envs.state_dict()
    for one, other in zip(before["arrays"], after["arrays"], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_first_reset_is_of_all(definition: str) -> None:
    envs = headrace.make_vec("CartPole-v1", 2, definition=definition)
    mask = np.array([True, False])
    assert "first reset" in refusal(lambda: envs.reset(options={"reset_mask": mask}))


def test_ended_episodes_are_not_stepped() -> None:
    for definition in DEFINITIONS:
        envs = headrace.make_vec(
            "Pendulum-v1", 3, definition=definition, autoreset="disabled", max_episode_steps=1
        )
        envs.reset(seed=0)
        envs.step(np.zeros((3, 1)))
        expected = "the episodes of environments [0, 1, 2] have ended"
        assert expected in refusal(lambda envs=envs: envs.step(np.zeros((3, 1))))
        envs.reset(options={"reset_mask": np.array([True, False, True])})
        assert "environments [1] have" in refusal(lambda envs=envs: envs.step(np.zeros((3, 1))))
        envs.reset(options={"reset_mask": np.array([False, True, False])})
        envs.step(np.zeros((3, 1)))
