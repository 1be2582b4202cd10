# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify, policy_uniforms
from headrace.policy import PolicyKey


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_the_native_generator_draws_what_arrays_do(count):
    ns, jax_ns = namespace("numpy"), namespace("jax")
    who = identify(ns, 5, seed=(3 << 32) + 11, first_env=2)
    step = np.uint32(2**32 - 2)
    ours = policy_uniforms(ns, PolicyKey(who, step), count)
    theirs = policy_uniforms(jax_ns, PolicyKey(identify(jax_ns, 5, (3 << 32) + 11, 2), step), count)
    assert len(ours) == count
    np.testing.assert_array_equal(ours, np.stack(theirs))
