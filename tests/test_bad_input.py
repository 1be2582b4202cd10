# SPDX-License-Identifier: Apache-2.0
"""What is asked for wrongly is refused, in one clear line, and nothing has changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace.collect.native_fused import NativeFusedCollector
from headrace.envs.vector.base import HostVectorEnv

DEFINITIONS = ("native", "array")


# ---- what does not exist ----

ASKED_WRONGLY: list[tuple[str, Callable[[], Any], str]] = [
    (
        "a near miss",
        lambda: headrace.make_vec("CartPole-v2"),
        "unknown environment 'CartPole-v2'; did you mean CartPole-v1",
    ),
    ("the case", lambda: headrace.spec("cartpole-v1"), "did you mean CartPole-v1"),
    (
        "nothing near",
        lambda: headrace.collect("qqqqqq"),
        "unknown environment 'qqqqqq'; known: CartPole-v1, ",
    ),
    (
        "a rung",
        lambda: headrace.make_collector("CartPole-v1", rung="native-fussed"),
        "unknown rung 'native-fussed'; did you mean native-fused",
    ),
    (
        "a definition",
        lambda: headrace.make_vec("CartPole-v1", definition="C"),
        "unknown definition 'C'; known: array, gym, native",
    ),
    (
        "a definition that is lacking",
        lambda: headrace.make_vec("Memory-v0", definition="gym"),
        "definition='gym' needs the gym definition; Memory-v0 has only: array, native",
    ),
    (
        "a rung that is lacking",
        lambda: headrace.make_collector("Memory-v0", rung="python"),
        "the python rung needs the gym definition; Memory-v0 has only: array, native",
    ),
    (
        "a rung for an environment of Gymnasium's",
        lambda: headrace.make_collector("Acrobot-v1", rung="native"),
        "the native rung needs the native definition; Acrobot-v1 has only: gym",
    ),
    (
        "an instruction set",
        lambda: headrace.make_vec("CartPole-v1", isa="v9"),
        "instruction set 'v9' is not available on this processor; available: ",
    ),
    (
        "an autoreset mode",
        lambda: headrace.make_vec("CartPole-v1", autoreset="next-step"),
        "unknown autoreset mode 'next-step'; did you mean next_step",
    ),
    # ---- numbers ----
    (
        "no environments",
        lambda: headrace.make_vec("CartPole-v1", 0),
        "num_envs is 0; it must be a whole number from 1",
    ),
    ("fewer", lambda: headrace.make_vec("CartPole-v1", -4), "num_envs is -4"),
    (
        "a fraction",
        lambda: headrace.make_vec("CartPole-v1", 2.5),  # pyright: ignore[reportArgumentType]
        "num_envs is 2.5",
    ),
    ("a collector of none", lambda: headrace.make_collector("CartPole-v1", num_envs=0), "num_envs"),
    ("no steps", lambda: headrace.make_collector("CartPole-v1", steps=0), "steps is 0"),
    ("no threads", lambda: headrace.make_vec("CartPole-v1", threads=0), "threads is 0"),
    ("a place", lambda: headrace.make_vec("CartPole-v1", first_env=-1), "first_env is -1"),
    (
        "a limit",
        lambda: headrace.make_vec("CartPole-v1", max_episode_steps=-1),
        "max_episode_steps is -1; it must be at least 0",
    ),
    (
        "a seed",
        lambda: headrace.make_vec("CartPole-v1", seed=-1),
        "seed is -1; it must be a whole number in 0 .. 2^64 - 1",
    ),
    ("a seed too large", lambda: headrace.make_vec("CartPole-v1", seed=2**64), "2^64 - 1"),
    (
        "a collector's seed",
        lambda: headrace.make_collector("CartPole-v1", seed=-1),
        "seed is -1; it must be in 0 .. 2^64 - 1",
    ),
    # ---- options ----
    (
        "an option",
        lambda: headrace.make_vec("CartPole-v1", gravity=1),
        "CartPole-v1 has no option 'gravity'",
    ),
    (
        "an option's value",
        lambda: headrace.make_vec("Memory-v0", state_bytes=100),
        "state_bytes is 100; it must be a multiple of 16 from 64 to 4194304",
    ),
    (
        "an option's kind",
        lambda: headrace.make_vec("Memory-v0", state_bytes="big"),
        "state_bytes must be an integer",
    ),
    (
        "an option with a spec",
        lambda: headrace.make_vec(headrace.spec("Memory-v0"), state_bytes=64),
        "options and max_episode_steps go with an id",
    ),
    (
        "threads of arrays",
        lambda: headrace.make_vec("CartPole-v1", definition="array", threads=2),
        "threads is for definition native; this is array",
    ),
    (
        "pictures",
        lambda: headrace.make_vec("CartPole-v1", render_mode="rgb_array"),
        "render_mode is for definition gym; this is native",
    ),
    (
        "a policy",
        lambda: headrace.make_collector("CartPole-v1", policy="best"),  # pyright: ignore
        "policy is 'best'; give 'random' or a headrace.Policy",
    ),
    # ---- registering ----
    (
        "twice",
        lambda: headrace.register("CartPole-v1", array="a:b"),
        "CartPole-v1 is registered already",
    ),
    ("nothing", lambda: headrace.register("Void-v0"), "Void-v0: give at least one definition"),
    (
        "a name",
        lambda: headrace.register("my env", array="a:b"),
        "Gymnasium does not take the id 'my env'",
    ),
]


@pytest.mark.parametrize(
    ("ask", "expected"),
    [pytest.param(ask, expected, id=label) for label, ask, expected in ASKED_WRONGLY],
)
def test_asked_wrongly(ask: Callable[[], Any], expected: str) -> None:
    assert expected in refusal(ask)


# ---- actions ----

WRONG_CHOICES = [
    ([0, 1], "actions have shape (2,); CartPole-v1 here takes (4,)"),
    (1, "actions have shape (); CartPole-v1 here takes (4,)"),
    (None, "actions have shape (); CartPole-v1"),
    ([[0], [1], [0], [1]], "actions have shape (4, 1)"),
    ([0, [1], 0, 1], "actions are uneven; CartPole-v1 here takes shape (4,)"),
    (["0", "1", "0", "1"], "CartPole-v1 takes integers"),
    ([0.0, 1.0, 0.0, 1.0], "actions have dtype float64; CartPole-v1 takes integers"),
    (np.zeros(4, np.float32), "actions have dtype float32; CartPole-v1 takes integers"),
    ([0, 1, 2, 1], "actions[2] is 2; CartPole-v1 takes 0 to 1"),
    ([0, 1, 0, -1], "actions[3] is -1; CartPole-v1 takes 0 to 1"),
    (np.array([0, 257, 0, 0]), "actions[1] is 257"),
    (np.array([0, 2**63, 0, 0], np.uint64), f"actions[1] is {2**63}"),
]
WRONG_COMPONENTS = [
    (np.zeros(4), "actions have shape (4,); Pendulum-v1 here takes (4, 1)"),
    ([[0], [0], [np.nan], [0]], "actions[2, 0] is nan; actions must be finite"),
    (np.array([[0], [np.inf], [0], [0]], np.float32), "actions[1, 0] is inf"),
    ([[0], [0], [0], [1e300]], "actions[3, 0] is 1e+300; actions must be finite"),
    ([["a"]] * 4, "Pendulum-v1 takes float32"),
    (np.zeros((4, 1), complex), "actions have dtype complex128; Pendulum-v1 takes float32"),
]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(
    ("name", "actions", "expected"),
    [
        *(("CartPole-v1", *case) for case in WRONG_CHOICES),
        *(("Pendulum-v1", *case) for case in WRONG_COMPONENTS),
    ],
)
def test_wrong_actions(name: str, actions: Any, expected: str, definition: str) -> None:
    envs = headrace.make_vec(name, 4, definition=definition)
    assert isinstance(envs, HostVectorEnv)
    envs.reset(seed=0)
    before = envs.state_dict()
    assert expected in refusal(lambda: envs.step(actions))
    after = envs.state_dict()
    assert after["clock"] == before["clock"]
    for one, other in zip(before["arrays"], after["arrays"], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_unusual_actions_are_taken(definition: str) -> None:
    """Anything that is an action, however it is stored."""
    choices = np.array([0, 1, 1, 0])
    wide = np.zeros((4, 3), int)
    wide[:, 1] = choices
    read_only = choices.copy()
    read_only.flags.writeable = False
    dtypes = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
    results = []
    for actions in (
        choices,
        [0, 1, 1, 0],
        (0, 1, 1, 0),
        wide[:, 1],
        choices[::-1][::-1],
        choices.astype(bool),
        choices.astype(">i8"),
        read_only,
        *(choices.astype(dtype) for dtype in dtypes),
    ):
        envs = headrace.make_vec("CartPole-v1", 4, definition=definition, seed=0)
        envs.reset()
        results.append(envs.step(actions)[0])
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    torques = []
    for dtype in (np.float32, np.float64, np.float16, np.int64):
        envs = headrace.make_vec("Pendulum-v1", 4, definition=definition, seed=0)
        envs.reset()
        torques.append(envs.step(np.array([[1], [-2], [0], [3]], dtype))[0])
    for result in torques:
        np.testing.assert_array_equal(result, torques[0])


def test_wrong_actions_for_a_batch() -> None:
    with headrace.make_collector(
        "CartPole-v1", rung="native-fused", num_envs=3, steps=5, fused_steps=2
    ) as collector:
        assert isinstance(collector, NativeFusedCollector)
        before = collector.state.copy()
        bad = np.zeros((5, 3), np.uint8)
        for actions, expected in (
            (np.zeros((3, 5), np.uint8), "actions have shape (3, 5); they must have (5, 3)"),
            (np.zeros((5, 3)), "actions have dtype float64"),
        ):
            assert expected in refusal(
                lambda given=actions: collector.collect(actions=given), (ValueError, TypeError)
            )
        np.testing.assert_array_equal(collector.state, before)
        bad[1, 2] = 2
        assert "actions[1, 2] is 2" in refusal(
            lambda: collector.collect(actions=bad), (ValueError, TypeError)
        )
        np.testing.assert_array_equal(collector.state, before)
