# SPDX-License-Identifier: Apache-2.0
"""PPO's update on the host against the one in XLA: each is the other's oracle."""

import subprocess
import sys
from dataclasses import replace

import gymnasium
import jax
import numpy as np
import pytest
from learner_numpy import continuous_spec, discrete_spec

import headrace
from headrace import HeadraceError, _native
from headrace.learn.algorithm import Rollout
from headrace.learn.networks import Mlp
from headrace.learn.ppo import METRICS, Config, Ppo
from headrace.learn.ppo_host import HostUpdate, has_native
from headrace.train import trees

SMALL = Config(
    hidden=(32, 64), epochs=2, minibatches=3, entropy_weight=0.02, learning_rate=3e-3, clip=0.1
)
T, N = 12, 5


def rollout(algorithm, seed, steps=T, num_envs=N):
    """Made up, from a policy that is near the one that learns."""
    spec, chance = algorithm.spec, np.random.default_rng(seed)
    shape = (steps, num_envs)
    if hasattr(spec.observation_space, "n"):
        obs, next_obs = chance.integers(0, spec.observation_space.n, (2, *shape))
    elif spec.observation_space.dtype == np.uint8:
        obs, next_obs = chance.integers(0, 9, (2, *shape, *spec.observation_space.shape), np.uint8)
    else:
        obs, next_obs = chance.normal(1, 2, (2, *shape, *spec.observation_space.shape)).astype(
            np.float32
        )
    ended = chance.random(shape) < 0.2
    terminated = ended & (chance.random(shape) < 0.5)
    log_prob, value = chance.normal(-1.2, 0.3, (2, *shape)).astype(np.float32)
    extras, masks, players = {"log_prob": log_prob, "value": value}, {}, {}
    if not hasattr(spec.action_space, "n"):
        action = chance.normal(size=(*shape, *spec.action_space.shape)).astype(np.float32)
        extras["drawn"] = action
    elif spec.masked:
        legal = chance.random((*shape, spec.action_space.n)) < 0.4
        legal[..., 2] = True
        action = np.argmax(legal * chance.random(legal.shape), axis=-1)
        masks = dict.fromkeys(("mask", "next_mask"), np.packbits(legal, -1, "little"))
        action = (action + spec.action_space.start).astype(np.uint8)
    else:
        action = chance.integers(0, spec.action_space.n, shape) + spec.action_space.start
        action = action.astype(np.uint8)
    if spec.players > 1:
        players = dict(
            zip(("to_play", "next_to_play"), chance.integers(0, 2, (2, *shape)), strict=True)
        )
    reward = chance.normal(size=shape).astype(np.float32)
    return Rollout(
        obs, action, reward, terminated, ended & ~terminated, next_obs, extras, **masks, **players
    )


def bytes_spec():
    spec = discrete_spec(4, masked=True, first=3)
    space = type(spec.observation_space)(0, 255, (2, 3), np.uint8)
    return replace(spec, observation_space=space, players=2)


def named_spec():
    """Observations that are one of seven numbers."""
    return replace(discrete_spec(), observation_space=gymnasium.spaces.Discrete(7))


NORMALISED = {"normalise_observations": True, "scale_rewards": True}
CASES = {
    "plain": (discrete_spec(), {}),
    "bytes, masked, by turns, numbered from 3": (bytes_spec(), {}),
    "many masked": (discrete_spec(11, masked=True), {"hidden": (64,)}),
    "continuous": (continuous_spec(), {"log_std": -0.5}),
    "normalised": (discrete_spec(), NORMALISED | {"anneal_steps": 15 * T * N}),
    "continuous, normalised, one body": (
        continuous_spec(),
        NORMALISED | {"normalise_advantages": False, "separate": False},
    ),
    "one body, rectified": (discrete_spec(), {"separate": False, "activation": "relu"}),
    "observations that are names": (named_spec(), {}),
    "of odd widths": (discrete_spec(), {"hidden": (7, 5)}),
}


@pytest.mark.parametrize("name", CASES)
def test_ten_updates_are_those_of_xla(name):
    spec, changes = CASES[name]
    algorithm = Ppo(spec, replace(SMALL, **changes))
    xla = jax.jit(algorithm.update)
    hosts = [HostUpdate(algorithm, native=False)]
    assert isinstance(algorithm.network.body, Mlp)
    if has_native(algorithm.network.body):
        hosts.append(HostUpdate(algorithm))
    theirs, all_of_ours = algorithm.init(3), [algorithm.init(3) for _ in hosts]
    for number in range(10):
        made = rollout(algorithm, number)
        theirs, wanted = xla(theirs, made)
        for at, host in enumerate(hosts):
            all_of_ours[at], got = host(all_of_ours[at], made)
            for metric in METRICS:
                assert got[metric] == pytest.approx(float(wanted[metric]), rel=2e-3, abs=2e-3), (
                    metric
                )
    wanted = trees.named(theirs)
    for ours in all_of_ours:
        got = trees.named(ours)
        assert wanted.keys() == got.keys()
        for leaf, array in got.items():
            assert isinstance(array, np.ndarray)
            assert array.dtype == wanted[leaf].dtype
            np.testing.assert_allclose(array, wanted[leaf], rtol=2e-3, atol=3e-4, err_msg=leaf)


def test_either_goes_on_from_the_other():
    algorithm = Ppo(discrete_spec(), SMALL)
    state, _ = HostUpdate(algorithm)(algorithm.init(0), rollout(algorithm, 0))
    again = trees.filled(algorithm.init(1), trees.named(jax.tree.map(np.asarray, state)))
    state, _ = jax.jit(algorithm.update)(again, rollout(algorithm, 1))
    HostUpdate(algorithm)(jax.tree.map(np.asarray, state), rollout(algorithm, 2))


def test_many_samples_are_shuffled_by_blocks():
    algorithm = Ppo(discrete_spec(), replace(SMALL, minibatches=2, epochs=1))
    made = rollout(algorithm, 0, steps=64, num_envs=130)
    theirs, _ = jax.jit(algorithm.update)(algorithm.init(0), made)
    ours, _ = HostUpdate(algorithm)(algorithm.init(0), made)
    for leaf, array in trees.named(ours).items():
        np.testing.assert_allclose(array, trees.named(theirs)[leaf], rtol=1e-3, atol=1e-4)


def test_what_is_given_stays_as_it_is():
    algorithm = Ppo(discrete_spec(), SMALL)
    state, made = algorithm.init(0), rollout(algorithm, 0)
    before = jax.tree.map(np.copy, (state, made))
    first, _ = HostUpdate(algorithm)(state, made)
    jax.tree.map(np.testing.assert_array_equal, (state, made), before)
    second, _ = HostUpdate(algorithm)(state, made)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize("native", [False, None])
@pytest.mark.parametrize("continuous", [False, True])
def test_what_is_no_number_is_seen(native, continuous):
    """Not lost in a comparison: whoever trains looks for it and stops."""
    algorithm = Ppo(continuous_spec() if continuous else discrete_spec(), SMALL)
    made = rollout(algorithm, 0)
    made.reward[3, 2] = np.nan
    state, metrics = HostUpdate(algorithm, native)(algorithm.init(0), made)
    assert not np.isfinite(metrics["loss/policy"])
    assert not all(np.isfinite(leaf).all() for leaf in trees.named(state.params).values())


def test_wrong_arrays_are_named():
    algorithm = Ppo(discrete_spec(), SMALL)
    if not _native.has_ppo():
        pytest.skip("this processor has NumPy's steps alone")
    update, state, made = HostUpdate(algorithm), algorithm.init(0), rollout(algorithm, 0)
    with pytest.raises(ValueError, match="a choice is none of the outputs"):
        update(state, made._replace(action=made.action + 5))
    extras = made.extras | {"log_prob": made.extras["log_prob"].astype(float)}
    with pytest.raises(TypeError, match="log_prob has dtype float64"):
        update(state, made._replace(extras=extras))


WITHOUT_JAX = """
import sys
sys.modules["jax"] = None  # importing it is an error
from headrace.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("flags", [(), ("--definition", "gym", "--mode", "async", "--no-tune")])
def test_cartpole_is_trained_without_jax(flags, tmp_path):
    command = [sys.executable, "-c", WITHOUT_JAX, "train", "CartPole-v1", "--total-steps", "4096"]
    command += ["--until", "1000", "--out", str(tmp_path / "run"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert headrace.load_policy(tmp_path / "run")(np.zeros(4)) in (0, 1)


def test_names_are_not_measured():
    with pytest.raises(HeadraceError, match="observations are numbers that only name something"):
        Ppo(named_spec(), Config(normalise_observations=True))


def test_networks_of_images_are_refused():
    algorithm = Ppo(headrace.spec("Chess-v0"), Config(channels=4, blocks=1))
    with pytest.raises(HeadraceError, match=r"dense layers.*--learner xla"):
        HostUpdate(algorithm)
