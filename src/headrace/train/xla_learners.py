# SPDX-License-Identifier: Apache-2.0
"""The update of a batch that came from a host, as one XLA program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from headrace.collect.base import HostBuffers, Request
from headrace.collect.batch import Batch
from headrace.envs.array.namespace import namespace
from headrace.learn.algorithm import Algorithm, Metrics, Rollout, State
from headrace.learn.replay import Layout, Ring
from headrace.learn.transitions import transitions
from headrace.train.cache import use_cache
from headrace.train.experience import rollout_of
from headrace.train.learners import Learner, Learnt, learnt_on_policy


class OnPolicyLearner(Learner):
    """Each batch is one rollout, learnt from once."""

    def __init__(self, algorithm: Algorithm):
        use_cache()
        self._algorithm = algorithm
        self._update = jax.jit(algorithm.update, donate_argnums=0)

    def ring(self, request: Request) -> None:
        """None."""

    def __call__(self, learner: State, ring: Ring | None, batch: Batch) -> Learnt:
        """One update, of as many minibatches as the algorithm makes of it."""
        learner, metrics = jax.block_until_ready(self._update(learner, rollout_of(batch)))
        return learnt_on_policy(self._algorithm, learner, metrics, batch)


class OffPolicyLearner(Learner):
    """Each batch is written to the ring, and then as many batches as there are updates drawn."""

    def __init__(self, algorithm: Algorithm, updates: int, replay_size: int, learning_starts: int):
        use_cache()
        self._algorithm, self._updates = algorithm, updates
        self._size, self._starts = replay_size, learning_starts
        self._config = algorithm.config
        self._layout: Layout
        self._program = jax.jit(self._learn, donate_argnums=(0, 1))

    def ring(self, request: Request) -> Ring:
        """Empty, for the transitions that this makes."""
        rollout = rollout_of(HostBuffers(request).batch(0))
        rows = transitions(namespace("numpy"), rollout, 1.0, self._config.n_step)
        self._layout = Layout(jax.tree.map(lambda part: part[0], rows))
        count = request.num_envs * request.steps
        return self._layout.empty(-(-self._size // count) * count, int(request.seed))

    def __call__(self, learner: State, ring: Ring | None, batch: Batch) -> Learnt:
        """All of an iteration's updates in one dispatch."""
        learner, ring, metrics, made = jax.block_until_ready(
            self._program(learner, ring, rollout_of(batch)._replace(extras={}))
        )
        made = int(made)
        return Learnt(learner, ring, metrics, made, made * self._config.batch_size)

    def _learn(self, learner: State, ring: Ring, rollout: Rollout) -> Any:
        config = self._config
        experience = transitions(namespace("jax"), rollout, config.discount, config.n_step)
        ring = self._layout.insert(ring, experience)
        count = jnp.where(ring.size >= self._starts, self._updates, 0)
        shapes = jax.eval_shape(self._update_once, learner, ring)[-1]
        zeros = jax.tree.map(lambda part: jnp.zeros(part.shape, jnp.float32), shapes)

        def one(_: Any, carry: Any) -> Any:
            learner, ring, sums = carry
            learner, ring, metrics = self._update_once(learner, ring)
            return learner, ring, jax.tree.map(jnp.add, sums, metrics)

        learner, ring, sums = lax.fori_loop(0, count, one, (learner, ring, zeros))
        return learner, ring, jax.tree.map(lambda x: x / jnp.maximum(count, 1), sums), count

    def _update_once(self, learner: State, ring: Ring) -> tuple[State, Ring, Metrics]:
        ring, batch = self._layout.sample(ring, self._config.batch_size)
        learner, metrics = self._algorithm.update(learner, batch)
        return learner, ring, metrics
