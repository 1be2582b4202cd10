# SPDX-License-Identifier: Apache-2.0
"""How long a learner works on a batch: the update of PPO, with a network of 64 x 64, as it trains.

Four epochs of four minibatches, as by default; the network is small and the same for every
environment, so that the ladder shows the rungs and not the size of somebody's network.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import jax
import numpy as np

from headrace.collect.base import HostBuffers, Request
from headrace.collect.batch import Batch
from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.envs.spec import EnvSpec
from headrace.learn.ppo import Config, Ppo
from headrace.policy import PolicyKey
from headrace.train.algorithms import check_spaces
from headrace.train.experience import rollout_of

MINIBATCHES = 4


def learner(spec: EnvSpec, num_envs: int, steps: int) -> Ppo:
    """What learns in a ladder."""
    check_spaces("ppo", spec)
    parts = next(n for n in range(MINIBATCHES, 0, -1) if num_envs * steps % n == 0)
    return Ppo(spec, Config(network="mlp", hidden=(64, 64), minibatches=parts))


def measure_update(spec: EnvSpec, num_envs: int, steps: int, repeats: int = 3) -> float:
    """Seconds for an update on a batch [steps, num_envs], at best; compilation is not in it."""
    algorithm = learner(spec, num_envs, steps)
    rollout = rollout_of(_made_up_batch(algorithm, Request(spec, num_envs, steps)))
    update = jax.jit(algorithm.update)
    state, rollout = jax.device_put((algorithm.init(0), rollout))
    jax.block_until_ready(update(state, rollout))
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        jax.block_until_ready(update(state, rollout))
        times.append(perf_counter() - begin)
    return min(times)


def _made_up_batch(algorithm: Ppo, request: Request) -> Batch:
    """As a collector makes it, of made-up numbers: only their shapes matter to the time."""
    buffers = HostBuffers(request)
    generator = np.random.default_rng(0)
    obs = buffers.obs
    if obs.dtype.kind == "f":
        obs[...] = generator.standard_normal(obs.shape, np.float32)
    else:
        obs[...] = generator.integers(0, 2, obs.shape)
    buffers.terminated[...] = generator.random(buffers.terminated.shape) < 0.02
    if buffers.mask is not None:
        buffers.mask[...] = 255
    ns = namespace("numpy")
    key = PolicyKey(identify(ns, request.num_envs, 0, 0), np.uint32(0))
    policy, acting = algorithm.policy("numpy").apply, algorithm.acting(algorithm.init(0))
    for step in range(request.steps):
        mask = buffers.mask_at(step)
        action, extras = policy(acting, obs[step], mask, key)
        buffers.action[step] = action
        buffers.set_extras(step, extras)
    batch = buffers.batch(0)
    return replace(batch, end_at=None, final_obs=obs[1:], final_mask=_next(buffers.mask),
                   final_to_play=_next(buffers.to_play))  # fmt: skip


def _next(rows: np.ndarray | None) -> np.ndarray | None:
    return None if rows is None else rows[1:]
