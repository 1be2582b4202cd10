# SPDX-License-Identifier: Apache-2.0
"""The `xla-fused` rung: policy and array environment in one XLA program, many steps a call."""

from __future__ import annotations

from typing import Any

import jax

from headrace.collect.base import Request
from headrace.collect.traced import Seen, TracedCollector
from headrace.envs.array.base import Step, start, step
from headrace.envs.array.namespace import Array, namespace


class XlaFusedCollector(TracedCollector):
    """JAX, K steps a call, with random actions or a JAX policy."""

    rung = "xla-fused"
    definition = "array"

    def __init__(self, request: Request):
        self._ns = namespace("jax")
        self._env = request.spec.make_array()
        super().__init__(request)

    def _start(self) -> tuple[Any, Seen]:
        state, obs = jax.jit(lambda who: start(self._ns, self._env, who))(self._policy.who)
        return state, Seen(obs)

    def _step(self, state: Any, action: Array) -> tuple[Any, Step]:
        return step(self._ns, self._env, state, action, self.spec.max_episode_steps)
