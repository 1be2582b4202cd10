# SPDX-License-Identifier: Apache-2.0
"""How long a learner works on a batch: one PPO update of a 64 x 64 network, compiled by JAX.

What is timed is the usual one: advantages by GAE, 4 epochs of 4 minibatches (blocks of the batch),
the clipped objective with a value loss and an entropy bonus, and Adam. The numbers learnt from are
random: only their shapes matter to the time.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.policy import MlpPolicy

EPOCHS, MINIBATCHES = 4, 4
DISCOUNT, GAE_LAMBDA, CLIP = 0.99, 0.95, 0.2
VALUE_WEIGHT, ENTROPY_WEIGHT, LEARNING_RATE = 0.5, 0.01, 3e-4
ADAM_1, ADAM_2, ADAM_EPSILON = 0.9, 0.999, 1e-8

Params = Any


class Samples(NamedTuple):
    """What the update learns from: [T, N, ...]."""

    obs: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    ended: jax.Array


class Learner(NamedTuple):
    """Parameters, and Adam's two moments of their gradients."""

    params: Params
    mean: Params
    square: Params


def measure_update(spec: EnvSpec, num_envs: int, steps: int, repeats: int = 3) -> float:
    """Seconds for an update on a batch [steps, num_envs], at best; compilation is not in it."""
    samples = _random_samples(spec, num_envs, steps)
    params = jax.tree.map(jnp.asarray, MlpPolicy(spec, (64, 64)).init())
    zeros = jax.tree.map(jnp.zeros_like, params)
    learner = Learner(params, zeros, zeros)
    discrete = isinstance(spec.action_space, gymnasium.spaces.Discrete)
    update = jax.jit(ppo_update, static_argnames="discrete")
    jax.block_until_ready(update(learner, samples, discrete))
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        jax.block_until_ready(update(learner, samples, discrete))
        times.append(perf_counter() - begin)
    return min(times)


def ppo_update(learner: Learner, samples: Samples, discrete: bool) -> Learner:
    """All epochs over one batch."""
    advantage = _advantages(samples)
    size = samples.reward.size // MINIBATCHES or 1
    flat = jax.tree.map(lambda array: array.reshape((-1, *array.shape[2:])), (samples, advantage))

    def minibatch(learner: Learner, number: jax.Array) -> tuple[Learner, None]:
        block = jax.tree.map(
            lambda array: jax.lax.dynamic_slice_in_dim(array, number * size, size), flat
        )
        gradient = jax.grad(_loss)(learner.params, *block, discrete)
        return _adam(learner, gradient), None

    numbers = jnp.tile(jnp.arange(MINIBATCHES), EPOCHS)
    return jax.lax.scan(minibatch, learner, numbers)[0]


def _advantages(samples: Samples) -> jax.Array:
    def backwards(carry: Any, row: Any) -> Any:
        next_advantage, next_value = carry
        value, reward, ended = row
        alive = 1.0 - ended
        error = reward + DISCOUNT * alive * next_value - value
        advantage = error + DISCOUNT * GAE_LAMBDA * alive * next_advantage
        return (advantage, value), advantage

    zero = jnp.zeros_like(samples.reward[0])
    rows = (samples.value, samples.reward, samples.ended)
    return jax.lax.scan(backwards, (zero, samples.value[-1]), rows, reverse=True)[1]


def _loss(params: Params, samples: Samples, advantage: jax.Array, discrete: bool) -> jax.Array:
    hidden = samples.obs
    for matrix, bias in params[:-1]:
        hidden = jnp.tanh(hidden @ matrix + bias)
    out = hidden @ params[-1][0] + params[-1][1]
    head, value = out[:, :-1], out[:, -1]
    if discrete:
        log_probs = jax.nn.log_softmax(head)
        log_prob = jnp.take_along_axis(log_probs, samples.action[:, None], axis=1)[:, 0]
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=1)
    else:
        log_prob = (-0.5 * (samples.action - head) ** 2).sum(axis=1)
        entropy = jnp.zeros_like(value)  # of a fixed width: a constant
    ratio = jnp.exp(log_prob - samples.log_prob)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * scaled)
    error = (value - advantage - samples.value) ** 2
    return (-gain + VALUE_WEIGHT * error - ENTROPY_WEIGHT * entropy).mean()


def _adam(learner: Learner, gradient: Params) -> Learner:
    mean = jax.tree.map(lambda m, g: ADAM_1 * m + (1 - ADAM_1) * g, learner.mean, gradient)
    square = jax.tree.map(lambda s, g: ADAM_2 * s + (1 - ADAM_2) * g * g, learner.square, gradient)
    params = jax.tree.map(
        lambda p, m, s: p - LEARNING_RATE * m / (jnp.sqrt(s) + ADAM_EPSILON),
        learner.params,
        mean,
        square,
    )
    return Learner(params, mean, square)


def _random_samples(spec: EnvSpec, num_envs: int, steps: int) -> Samples:
    space, action_space = spec.observation_space, spec.action_space
    for what, part in (("observations", space), ("actions", action_space)):
        if not isinstance(part, gymnasium.spaces.Box | gymnasium.spaces.Discrete):
            raise HeadraceError(f"the update is not measured for {what} of {type(part).__name__}")
    generator = np.random.default_rng(0)
    size = int(np.prod(space.shape or ()))

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(generator.standard_normal((steps, num_envs, *shape), np.float32))

    if isinstance(action_space, gymnasium.spaces.Discrete):
        action = jnp.asarray(
            generator.integers(int(action_space.n), size=(steps, num_envs), dtype=np.int32)
        )
    else:
        action = normal(int(np.prod(action_space.shape or ())))
    ended = generator.random((steps, num_envs)) < 0.02
    return Samples(
        obs=normal(size),
        action=action,
        log_prob=normal(),
        value=normal(),
        reward=normal(),
        ended=jnp.asarray(ended.astype(np.float32)),
    )
