# SPDX-License-Identifier: Apache-2.0
"""The array rungs, over NumPy, torch and XLA, and the native kernel inside XLA: one experience.

All are compared with `native-fused`: the same random numbers to the last bit, and so the same
actions and first states; the arithmetic to rounding.
"""

import re
from typing import Any

import jax
import numpy as np
import pytest
from refusals import refusal

import headrace
from headrace import Batch, MlpPolicy, Policy
from headrace.envs.array.namespace import namespace
from headrace.envs.native_xla import native_step
from headrace.envs.philox import philox

RUNGS = ("numpy", "torch", "xla", "xla-fused", "native-xla")
LIMITS = {"CartPole-v1": 20, "Pendulum-v1": 13, "Memory-v0": 30}
KNOWN_ANSWERS = [  # published with Random123
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def batches(name: str, rung: str, count: int = 2, params: Any = None, **arguments: Any) -> list:
    arguments = {"num_envs": 37, "steps": 40, "seed": 3, **arguments}
    with headrace.make_collector(
        name, rung=rung, max_episode_steps=LIMITS[name], **arguments
    ) as collector:
        return [on_host(collector.collect(params)) for _ in range(count)]


def on_host(batch: Batch) -> dict[str, np.ndarray]:
    """What a batch says in either form, in memory of its own."""
    returns, lengths = batch.episodes()
    extras = {name: np.array(array) for name, array in batch.extras.items()}
    names = ("obs", "last_obs", "action", "reward", "terminated", "truncated")
    arrays = {name: np.array(getattr(batch, name)) for name in names}
    arrays |= {"returns": np.array(returns), "lengths": np.array(lengths)}
    return arrays | {"next_obs": np.array(batch.next_obs())} | extras


def assert_agree(ours: list[dict], theirs: list[dict]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        for name, values in other.items():
            assert one[name].shape == values.shape, name
            if name in ("terminated", "truncated", "lengths", "action") and values.dtype != float:
                assert one[name].dtype == values.dtype, name
            np.testing.assert_allclose(one[name], values, rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("name", LIMITS)
def test_random_batches_are_the_native_ones(name: str, rung: str) -> None:
    ours = batches(name, rung)
    assert_agree(ours, batches(name, "native-fused"))
    assert ours[0]["truncated"].any()
    assert not np.array_equal(ours[0]["action"], ours[1]["action"])
    assert not np.array_equal(ours[0]["action"], batches(name, rung, seed=4)[0]["action"])


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_compiled_torch(name: str) -> None:
    assert_agree(batches(name, "torch-compile"), batches(name, "native-fused"))


@pytest.mark.parametrize("rung", RUNGS)
def test_slices_and_chunks_of_a_job(rung: str) -> None:
    """Environments 5 to 16 are the same in a job of their own, as in batches of half the length."""
    whole = batches("CartPole-v1", rung)
    part = batches("CartPole-v1", rung, first_env=5, num_envs=12)
    halves = batches("CartPole-v1", rung, count=4, steps=20)
    for batch, slice_ in zip(whole, part, strict=True):
        np.testing.assert_allclose(slice_["obs"], batch["obs"][:, 5:17], atol=1e-6)
        np.testing.assert_array_equal(slice_["action"], batch["action"][:, 5:17])
    joined = np.concatenate([half["obs"] for half in halves])
    np.testing.assert_allclose(joined, np.concatenate([b["obs"] for b in whole]), atol=1e-6)


@pytest.mark.parametrize("rung", ["xla-fused", "native-xla"])
def test_fused_steps_change_nothing(rung: str) -> None:
    for fused_steps in (1, 7, 40):
        found = batches("CartPole-v1", rung, fused_steps=fused_steps)
        for one, other in zip(found, batches("CartPole-v1", rung), strict=True):
            for name, values in other.items():
                np.testing.assert_array_equal(one[name], values, err_msg=name)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize("library", ["jax", "numpy"])
def test_a_policy_acts_the_same_everywhere(name: str, library: Any) -> None:
    network = MlpPolicy(headrace.spec(name), (8,))
    arguments = {"policy": network.policy(library), "params": network.init(1)}
    arguments |= {"num_envs": 11, "steps": 12, "count": 1}
    expected = batches(name, "native", **arguments)
    assert expected[0]["log_prob"].shape == (12, 11)
    assert len(np.unique(expected[0]["action"])) > 1
    takes = {"jax": ("numpy", "xla", "xla-fused", "native-xla"), "numpy": ("numpy", "torch", "xla")}
    for rung in takes[library]:
        assert_agree(batches(name, rung, **arguments), expected)


def test_instruction_sets_and_threads_inside_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = batches("Pendulum-v1", "native-xla")
    threaded = batches("Pendulum-v1", "native-xla", threads=2)
    monkeypatch.setenv("HEADRACE_ISA", headrace._native.supported_isas()[0])  # pyright: ignore
    for found in (batches("Pendulum-v1", "native-xla"), threaded):
        for one, other in zip(found, expected, strict=True):
            for name, values in other.items():
                np.testing.assert_array_equal(one[name], values, err_msg=name)


@pytest.mark.parametrize("num_envs", [1, 3, 8, 17, 1000])
@pytest.mark.parametrize("name", LIMITS)
def test_tails_inside_xla(name: str, num_envs: int) -> None:
    """XLA's buffers are not padded to whole vectors: nothing may be read or written behind them."""
    arguments = {"num_envs": num_envs, "steps": 9}
    assert_agree(
        batches(name, "native-xla", **arguments), batches(name, "native-fused", **arguments)
    )


def test_the_state_is_stepped_in_place() -> None:
    """XLA gives the kernel the old state's memory for the new one: nothing is copied."""
    native = headrace.spec("CartPole-v1").make_native()
    state, action = native.make_state(64), np.zeros(64, np.uint8)

    def ten_steps(state: Any, action: Any) -> Any:
        body = lambda _, state: native_step(native, state, action, 500)[0]  # noqa: E731
        return jax.lax.fori_loop(0, 10, body, state)

    program = jax.jit(ten_steps, donate_argnums=0).lower(state, action).compile()
    text = program.as_text()
    assert text is not None
    assert "output_to_operand_aliasing" in text
    words = state.shape[0]
    assert not re.search(rf"copy\(u32\[{words},64\]", text)


def test_wrong_policies() -> None:
    jax_policy = MlpPolicy(headrace.spec("CartPole-v1")).policy("jax")
    message = refusal(
        lambda: headrace.make_collector("CartPole-v1", rung="torch", policy=jax_policy)
    )
    assert message == "the torch rung takes these policies: random, numpy; not jax"
    numpy_policy = Policy(lambda params, obs, mask, key: (obs[:, 0], {}), "numpy")
    for rung in ("xla-fused", "native-xla"):
        message = refusal(
            lambda rung=rung: headrace.make_collector("CartPole-v1", rung=rung, policy=numpy_policy)
        )
        assert message == f"the {rung} rung takes these policies: random, jax; not numpy"
    flat = Policy(lambda params, obs, mask, key: (obs[:, :1], {}), "jax")
    message = refusal(
        lambda: headrace.collect("CartPole-v1", rung="xla-fused", policy=flat, num_envs=3, steps=2)
    )
    assert message == "the policy's actions have shape (3, 1), not (3,)"


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_the_generator_gives_the_published_numbers(library: str) -> None:
    ns = namespace(library)

    def words(values: tuple[int, ...]) -> tuple[Any, ...]:
        array = np.array(values, np.uint32)
        return tuple(
            ns.xp.asarray(
                array.view(np.int32)[i : i + 1] if library == "torch" else array[i : i + 1]
            )
            for i in range(len(values))
        )

    for counter, key, expected in KNOWN_ANSWERS:
        got = philox(ns, words(counter), words(key))  # pyright: ignore[reportArgumentType]
        assert [int(np.asarray(word)[0]) & 0xFFFFFFFF for word in got] == list(expected)
