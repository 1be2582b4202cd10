# SPDX-License-Identifier: Apache-2.0
"""The border to the native core: what it is bound to is checked once, and completely."""

from typing import Any

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.envs.native import Autoreset, BoundRollout


def buffers(**other: np.ndarray) -> dict[str, Any]:
    """What one step of four CartPoles is bound to, some of it replaced."""
    good = {
        "state": headrace.spec("CartPole-v1").make_native().make_state(4),
        "observation": np.zeros((1, 4, 4), np.float32),
        "reward": np.zeros((1, 4), np.float32),
        "terminated": np.zeros((1, 4), np.bool_),
        "truncated": np.zeros((1, 4), np.bool_),
    }
    return good | other


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


WRONG_BUFFERS = [
    ({"reward": np.zeros((1, 8), np.float32)[:, ::2]}, "reward is not contiguous"),
    ({"observation": np.zeros((1, 4, 8), np.float32)[..., ::2]}, "observation is not contiguous"),
    ({"reward": np.zeros((1, 4))}, "reward has dtype float64; it must be float32"),
    ({"observation": np.zeros((1, 4, 3), np.float32)}, "observation has shape (1, 4, 3)"),
    ({"reward": np.zeros(4, np.float32)}, "reward has shape (4,); it must be (steps, num_envs)"),
    ({"truncated": np.zeros((1, 3), np.bool_)}, "truncated has shape (1, 3); it must be (1, 4)"),
    ({"state": np.zeros((12, 5), np.uint32)}, "state has shape (12, 5); it must be (12, 4)"),
    ({"state": np.zeros((12, 4), np.float32)}, "state has dtype float32; it must be uint32"),
]


@pytest.mark.parametrize(("wrong", "expected"), WRONG_BUFFERS)
def test_wrong_buffers(wrong: dict[str, np.ndarray], expected: str) -> None:
    kernel = headrace.spec("CartPole-v1").make_native().kernel
    assert expected in refusal(
        lambda: BoundRollout(
            kernel,
            **buffers(**wrong),
            autoreset=Autoreset.NEXT_STEP,
            max_episode_steps=500,
            threads=1,
        ),
        (ValueError, TypeError),
    )


def test_columns_of_a_larger_batch() -> None:
    """Rows may be parts of longer ones, alike in all buffers; what is beside them stays."""
    definition = headrace.spec("CartPole-v1").make_native()
    wide = {
        "observation": np.full((3, 9, 4), 7, np.float32),
        "reward": np.full((3, 9), 7, np.float32),
        "terminated": np.ones((3, 9), np.bool_),
        "truncated": np.ones((3, 9), np.bool_),
        "drawn": np.full((3, 9), 7, np.uint8),
    }
    dense = {name: np.zeros_like(array[:, :4]) for name, array in wide.items()}
    common: dict[str, Any] = {
        "autoreset": Autoreset.SAME_STEP, "max_episode_steps": 500, "threads": 1,
    }  # fmt: skip
    for target in ({name: array[:, 2:6] for name, array in wide.items()}, dense):
        state = definition.make_state(4, seed=1)
        definition.kernel.reset(state, np.zeros((4, 4), np.float32))
        bound = BoundRollout(definition.kernel, state=state, **target, **common)
        bound.run(0, 2, 0)
        bound.run(2, 1, 0, clock=2)
    for name, array in wide.items():
        np.testing.assert_array_equal(array[:, 2:6], dense[name])
        assert (np.delete(array, range(2, 6), axis=1) == np.full(1, 7).astype(array.dtype)).all()
    mixed = {**dense, "truncated": wide["truncated"][:, 2:6]}
    message = refusal(
        lambda: BoundRollout(definition.kernel, state=state, **mixed, **common), ValueError
    )
    assert "truncated is not contiguous, nor columns of an array of 4 environments" in message


@pytest.mark.parametrize("name", ["state", "observation", "reward", "terminated", "truncated"])
def test_buffers_that_must_not_be_written(name: str) -> None:
    kernel = headrace.spec("CartPole-v1").make_native().kernel
    with pytest.raises((TypeError, ValueError)):
        BoundRollout(
            kernel,
            **buffers(**{name: read_only(buffers()[name])}),
            autoreset=Autoreset.NEXT_STEP,
            max_episode_steps=500,
            threads=1,
        )
