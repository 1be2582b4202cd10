# SPDX-License-Identifier: Apache-2.0
"""Actor and critics on two devices: the same parameters as on one."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import jax, numpy as np
from headrace.learn.algorithm import Transitions
from headrace.runtime.two_devices import make_updates
from headrace.train import trees
from headrace.train.config import Settings, environment
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of

given = {"hidden": (16, 16), "batch_size": 32}
config = resolve("Pendulum-v1", algo=sys.argv[1], preset="none", given=given)
algorithm = make_algorithm_of(config, environment(config))
generator = np.random.default_rng(0)
shapes = {"obs": (3,), "action": (1,), "reward": (), "discount": (), "next_obs": (3,)}
states = []
for names in ((None, None), ("cpu:0", "cpu:0"), ("cpu:0", "cpu:1")):
    updates = make_updates(algorithm, Settings(actor_device=names[0], critic_device=names[1]))
    state = algorithm.init(3)
    generator = np.random.default_rng(1)
    for _ in range(20):  # a hundred updates, five in a dispatch
        batches = Transitions(**{
            k: generator.uniform(-1, 1, (5, 32, *v)).astype(np.float32) for k, v in shapes.items()
        })
        result = updates(state, batches)
        state = result.state
    if names[1] == "cpu:1":
        where = {leaf.device.id for leaf in jax.tree.leaves(state.critic)}
        assert where == {1}, where
        assert {leaf.device.id for leaf in jax.tree.leaves(state.actor)} == {0}
    flat = [np.ravel(np.asarray(x)) for x in trees.named(algorithm.acting(state)).values()]
    np.testing.assert_array_equal(np.concatenate(flat), np.asarray(result.vector))
    states.append({k: np.asarray(v) for k, v in trees.named(state).items()})
for name, plain in states[0].items():
    np.testing.assert_array_equal(states[1][name], states[2][name], err_msg=name)
    np.testing.assert_allclose(states[1][name], plain, rtol=2e-2, atol=2e-4, err_msg=name)
assert int(states[2]["updates"]) == 100
"""


@pytest.mark.parametrize("algo", ["sac", "td3"])
def test_two_devices_learn_what_one_does(algo):
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, algo], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_an_algorithm_without_an_actor_is_refused():
    from headrace.errors import HeadraceError
    from headrace.runtime.two_devices import make_updates
    from headrace.train.config import Settings, environment
    from headrace.train.resolve import resolve
    from headrace.train.session import make_algorithm_of

    config = resolve("CartPole-v1", algo="dqn")
    with pytest.raises(HeadraceError, match="for sac and td3"):
        make_updates(make_algorithm_of(config, environment(config)), Settings(actor_device="cpu:0"))
    config = resolve("Pendulum-v1", algo="sac")
    with pytest.raises(HeadraceError, match="there is no device tpu:7; there are: cpu:0"):
        make_updates(make_algorithm_of(config, environment(config)), Settings(actor_device="tpu:7"))
