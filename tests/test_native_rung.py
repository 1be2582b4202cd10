# SPDX-License-Identifier: Apache-2.0
"""The native rungs give one result, to the last bit, however the work is cut up."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace import Batch, _native
from headrace.collect.native_fused import NativeFusedCollector
from headrace.envs.native import Autoreset, BoundRollout

IDS = ("CartPole-v1", "Pendulum-v1", "Memory-v0")
ISAS = _native.supported_isas()
# More than there is work in, so that ends by the limit and by the rules both occur.
LIMITS = {"CartPole-v1": 20, "Pendulum-v1": 13, "Memory-v0": 30}


def collected(name: str, num_envs: int = 37, steps: int = 70, **arguments: Any) -> Batch:
    arguments = {"rung": "native-fused", "seed": 5, **arguments}
    return headrace.collect(
        name, num_envs=num_envs, steps=steps, max_episode_steps=LIMITS[name], **arguments
    )


def assert_identical(ours: Batch, theirs: Batch) -> None:
    """Every bit of every array: -0.0 is not 0.0, and a NaN would be itself."""
    for item in dataclasses.fields(Batch):
        one, other = getattr(ours, item.name), getattr(theirs, item.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes(), item.name
        else:
            assert one == other, item.name
    assert len(ours.episode_length) > 0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("num_envs", [1, 15, 16, 17, 600])
@pytest.mark.parametrize("name", IDS)
def test_instruction_sets(
    name: str, num_envs: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_ISA", ISAS[0])
    plainest = collected(name, num_envs)
    monkeypatch.setenv("HEADRACE_ISA", isa)
    assert headrace.spec(name).make_native().kernel.isa == isa
    assert_identical(collected(name, num_envs), plainest)


@pytest.mark.parametrize("rung", ["native", "openmp", "native-fused"])
@pytest.mark.parametrize("name", IDS)
def test_rungs_threads_and_blocks(name: str, rung: str) -> None:
    """1500 environments are three blocks; on two threads, and on five, blocks are smaller."""
    whole = collected(name, 1500, threads=1)
    for threads in (1, 2, 5):
        assert_identical(collected(name, 1500, rung=rung, threads=threads), whole)


@pytest.mark.parametrize("fused_steps", [1, 7, 64, 70])
@pytest.mark.parametrize("name", IDS)
def test_fused_steps(name: str, fused_steps: int) -> None:
    assert_identical(collected(name, fused_steps=fused_steps), collected(name))


@pytest.mark.parametrize("name", IDS)
@given(cuts=st.sets(st.integers(1, 69)), threads=st.integers(1, 3))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_any_chunks(name: str, cuts: set[int], threads: int) -> None:
    """The 70 steps in calls of any lengths, whatever the number of threads."""
    want = collected(name)
    definition = headrace.spec(name).make_native()
    state = definition.make_state(37, seed=5)
    obs = np.zeros((71, *want.obs.shape[1:]), np.float32)
    definition.kernel.reset(state, obs[0])
    got = {
        "reward": np.zeros_like(want.reward),
        "terminated": np.zeros_like(want.terminated),
        "truncated": np.zeros_like(want.truncated),
        "final_observation": np.zeros((70 * 37, *want.obs.shape[2:]), np.float32),
        "ended_at": np.zeros((70 * 37, 2), np.int32),
        "episode_return": np.zeros(70 * 37, np.float32),
        "episode_length": np.zeros(70 * 37, np.int32),
        "drawn": np.zeros_like(want.action),
    }
    bound = BoundRollout(
        definition.kernel,
        state=state,
        observation=obs[1:],
        autoreset=Autoreset.SAME_STEP,
        max_episode_steps=LIMITS[name],
        threads=threads,
        **got,
    )
    edges = [0, *sorted(cuts), 70]
    ends = 0
    for first, last in itertools.pairwise(edges):
        ends = bound.run(first, last - first, ends, clock=first)
    assert_identical(
        Batch(
            obs=obs[:-1],
            last_obs=obs[-1],
            action=got["drawn"],
            reward=got["reward"],
            terminated=got["terminated"],
            truncated=got["truncated"],
            final_obs=got["final_observation"][:ends],
            end_at=got["ended_at"][:ends],
            episode_return=got["episode_return"][:ends],
            episode_length=got["episode_length"][:ends],
        ),
        want,
    )


@pytest.mark.parametrize("rung", ["native", "openmp", "native-fused"])
@pytest.mark.parametrize("name", IDS)
def test_two_batches_are_one_of_twice_the_length(name: str, rung: str) -> None:
    whole = collected(name)
    with headrace.make_collector(
        name, rung=rung, num_envs=37, steps=35, seed=5, max_episode_steps=LIMITS[name]
    ) as collector:
        one, other = collector.collect().copy(), collector.collect().copy()
    assert other.end_at is not None
    other.end_at[:, 0] += 35
    joined: dict[str, Any] = {
        item.name: np.concatenate([getattr(one, item.name), getattr(other, item.name)])
        for item in dataclasses.fields(Batch)
        if isinstance(getattr(one, item.name), np.ndarray) and item.name != "last_obs"
    }
    assert_identical(Batch(last_obs=other.last_obs, **joined), whole)


@pytest.mark.parametrize("name", IDS)
def test_slices_of_a_job(name: str) -> None:
    """Environments 10 to 19 are the same among 37 as by themselves."""
    whole, part = collected(name), collected(name, 10, first_env=10)
    for item in ("obs", "action", "reward", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(part, item), getattr(whole, item)[:, 10:20])
    np.testing.assert_array_equal(part.last_obs, whole.last_obs[10:20])
    assert whole.end_at is not None
    assert part.end_at is not None
    mine = (whole.end_at[:, 1] >= 10) & (whole.end_at[:, 1] < 20)
    np.testing.assert_array_equal(part.end_at + np.array([0, 10]), whole.end_at[mine])
    np.testing.assert_array_equal(part.final_obs, whole.final_obs[mine])
    np.testing.assert_array_equal(part.episode_return, whole.episode_return[mine])


@pytest.mark.parametrize("fused_steps", [1, 7, None])
@pytest.mark.parametrize("name", IDS)
def test_given_actions(name: str, fused_steps: int | None) -> None:
    """Those that were drawn, given back; as they are, and as 64-bit numbers."""
    drawn = collected(name)
    wide = np.int64 if drawn.action.dtype == np.uint8 else np.float64
    for actions in (drawn.action, drawn.action.astype(wide)):
        with headrace.make_collector(
            name,
            rung="native-fused",
            num_envs=37,
            steps=70,
            seed=5,
            fused_steps=fused_steps,
            max_episode_steps=LIMITS[name],
        ) as collector:
            assert isinstance(collector, NativeFusedCollector)
            assert_identical(collector.collect(actions=actions), drawn)


@pytest.mark.parametrize("name", IDS)
def test_a_vector_environment_steps_the_same(name: str) -> None:
    batch = collected(name)
    envs = headrace.make_vec(
        name, 37, seed=5, autoreset="same_step", max_episode_steps=LIMITS[name]
    )
    obs, _ = envs.reset()
    following = np.concatenate([batch.obs[1:], batch.last_obs[None]])
    np.testing.assert_array_equal(obs, batch.obs[0])
    ends = []
    for t in range(70):
        obs, reward, terminated, truncated, infos = envs.step(batch.action[t])
        np.testing.assert_array_equal(obs, following[t])
        np.testing.assert_array_equal(reward, batch.reward[t])
        np.testing.assert_array_equal(terminated, batch.terminated[t])
        np.testing.assert_array_equal(truncated, batch.truncated[t])
        ends += [one for one in infos.get("final_obs", ()) if one is not None]
    np.testing.assert_array_equal(ends, batch.final_obs)


@pytest.mark.parametrize("name", IDS)
def test_a_batch_agrees_with_itself(name: str) -> None:
    """Returns and lengths are those of the rewards, and no step is missing between two ends."""
    batch = collected(name)
    assert batch.end_at is not None
    np.testing.assert_array_equal(np.argwhere(batch.ended), batch.end_at)
    begin = np.zeros(37, int)
    for (t, env), total, length in zip(
        batch.end_at, batch.episode_return, batch.episode_length, strict=True
    ):
        rewards = batch.reward[begin[env] : t + 1, env]
        assert length == len(rewards) <= LIMITS[name]
        assert batch.truncated[t, env] == (length == LIMITS[name])
        np.testing.assert_allclose(total, rewards.sum(dtype=np.float64), rtol=1e-5)
        begin[env] = t + 1
    assert batch.transition_bytes() < 40
