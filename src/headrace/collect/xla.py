# SPDX-License-Identifier: Apache-2.0
"""The `xla` rung: the array definition compiled by XLA, one call a step."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from headrace.collect.base import Request
from headrace.collect.stepwise import StepwiseCollector
from headrace.collect.traced import Moment, Seen, TracedPolicy
from headrace.envs.array.base import Step, start, step
from headrace.envs.array.namespace import Array, namespace
from headrace.policy import Policy


class XlaCollector(StepwiseCollector):
    """JAX, one call a step, a JAX policy included."""

    rung = "xla"

    def __init__(self, request: Request):
        super().__init__(request)
        self._ns = namespace("jax")
        self._traced = TracedPolicy(request)
        self.state, obs = jax.jit(lambda who: start(self._ns, self._env, who))(self._traced.who)
        self._buffers.obs[-1] = obs
        policy = request.policy
        self._acts_inside = isinstance(policy, Policy) and policy.namespace == "jax"
        program = self._act_and_step if self._acts_inside else self._only_step
        self._program = jax.jit(program, donate_argnums=0)

    def _only_step(self, state: Any, action: Array) -> tuple[Any, Step]:
        return step(self._ns, self._env, state, action, self.spec.max_episode_steps)

    def _act_and_step(
        self, state: Any, obs: Array, params: Any, moment: Moment
    ) -> tuple[Any, tuple[Step, Array, dict[str, Array]]]:
        action, extras = self._traced.act(params, Seen(obs), moment, None, np.int32(0))
        state, out = self._only_step(state, action)
        return state, (out, action, extras)

    def _advance(self, params: Any, t: int) -> Step:
        if not self._acts_inside:
            return super()._advance(params, t)
        buffers, moment = self._buffers, self._traced.moment(self.clock + t, 1)
        self.state, results = self._program(self.state, buffers.obs[t], params, moment)
        out, buffers.action[t], extras = jax.device_get(results)
        buffers.set_extras(t, extras)
        return out

    def _step(self, action: Any) -> Step:
        self.state, out = self._program(self.state, action)
        return jax.device_get(out)

    @property
    def calls_per_step(self) -> float:
        """One."""
        return 1.0
