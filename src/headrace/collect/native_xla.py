# SPDX-License-Identifier: Apache-2.0
"""The `native-xla` rung: policy and native environment in one XLA program, many steps a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

from headrace.collect.base import HostBuffers, Request
from headrace.collect.traced import Seen, TracedCollector
from headrace.envs.array.base import Step
from headrace.envs.array.namespace import Array
from headrace.envs.native_xla import native_step, register


class NativeXlaCollector(TracedCollector):
    """JAX around the native kernel, K steps a call, with random actions or a JAX policy.

    The kernel runs on one thread unless `threads` says otherwise: a step of few environments is
    over before other threads are awake, and XLA's own are between the steps.
    """

    rung = "native-xla"
    definition = "native"

    def __init__(self, request: Request):
        register()
        request.spec.require("native", "the native-xla rung")
        self.native = request.spec.make_native()
        super().__init__(request)

    def _start(self) -> tuple[Any, Seen]:
        request = self.request
        native, buffers = self.native, HostBuffers(replace(request, steps=1))
        state = native.make_state(request.num_envs, request.seed, request.first_env)
        seen = Seen(
            *(None if a is None else a[0] for a in (buffers.obs, buffers.mask, buffers.to_play))
        )
        native.kernel.reset(state, seen.obs, mask=seen.mask, to_play=seen.to_play)
        return jax.device_put((state, seen), jax.devices("cpu")[0])

    def _step(self, state: Any, action: Array) -> tuple[Any, Step]:
        limit, threads = self.spec.max_episode_steps, self.request.threads or 1
        return native_step(self.native, state, action, limit, threads)
