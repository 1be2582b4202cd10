# SPDX-License-Identifier: Apache-2.0
"""Off-policy training inside one XLA program: environments, replay and updates.

An iteration is T steps of N environments, written to the ring, and k updates from it; a dispatch
makes several, with no Python between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.collect.base import Request
from headrace.collect.rungs import rung_class
from headrace.collect.traced import Seen, TracedCollector
from headrace.envs.array.namespace import Array, namespace
from headrace.envs.philox import Identity
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm, Rollout, State, Transitions
from headrace.learn.replay import Layout, Ring
from headrace.learn.transitions import transitions
from headrace.train.cache import use_cache
from headrace.train.compiled import RUNGS
from headrace.train.stopwatch import GENERATION, UPDATE, phase_ended, runs_on, started
from headrace.train.trainer import Progress

_LONGEST = 64
"""Iterations of a dispatch, at most: what their episodes are noted in has this many rows."""


class OffPolicyState(NamedTuple):
    """All that a run is: what continues it, bit for bit."""

    learner: State
    envs: Any
    seen: Seen
    who: Identity
    """Whose random numbers the policy draws."""
    ring: Ring
    clock: Array
    """Steps that every environment has taken, one word: random numbers hang on it."""
    counts: Array
    """Iterations and updates so far: int64, kept on the host."""


class _Running(NamedTuple):
    """The part of it that is in the program."""

    learner: State
    envs: Any
    seen: Seen
    who: Identity
    ring: Ring
    clock: Array


class CompiledOffPolicyTrainer:
    """Trains by an off-policy algorithm on environments of array or native definitions.

    The same arguments and as many iterations give the same bits, in however many calls.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        spec: EnvSpec,
        *,
        num_envs: int,
        steps: int,
        seed: int = 0,
        definition: str | None = None,
        updates: int | None = None,
        replay_size: int = 100_000,
        learning_starts: int = 1000,
    ):
        """`definition` None takes the native one where there is one.

        `updates` are of an iteration, None: one for each environment step. The ring holds at least
        `replay_size` transitions; updates begin when it has `learning_starts` of them.
        """
        if algorithm.on_policy:
            raise HeadraceError(f"{algorithm.name} learns on-policy: it takes no replay")
        definition = definition or ("native" if "native" in spec.definitions else "array")
        if definition not in RUNGS:
            raise HeadraceError(
                f"compiled training is from array or native definitions, not {definition}"
            )
        spec.require(definition, "compiled training")
        use_cache()
        self.algorithm, self.num_envs, self.steps = algorithm, num_envs, steps
        request = Request(spec, num_envs, steps, algorithm.policy("jax"), seed)
        collector = rung_class(RUNGS[definition])(request)
        assert isinstance(collector, TracedCollector)
        self._collector = collector
        batch = num_envs * steps
        self._updates = batch if updates is None else updates
        self._starts = max(learning_starts, 1)
        capacity = max(-(-replay_size // batch), 1) * batch  # whole batches: see Layout.insert
        if self._starts > capacity:
            raise HeadraceError(
                f"learning starts at {learning_starts} transitions; the ring holds {capacity}"
            )
        self._iterations = self._made = 0
        self._spent = np.zeros(2)
        """Seconds in each phase."""
        clock = np.zeros((), np.uint32)
        begin = _Running(
            algorithm.init(seed),
            collector.state,
            collector.seen,
            collector.who,
            None,  # pyright: ignore[reportArgumentType] - its rows are yet to be known
            clock,
        )
        self._layout = Layout(self._example(begin))
        # All where the environments are, so that the first call's program is every call's.
        self._device = next(iter(jax.tree.leaves(collector.state)[0].devices()))
        self._timed = runs_on(self._device)
        ring = self._layout.empty(capacity, seed)
        self._state = jax.device_put(begin._replace(ring=ring), self._device)
        self._program = jax.jit(self._run, donate_argnums=0)

    def advance(self, iterations: int) -> Progress:
        """So many times: T steps of every environment, and the updates that go with them.

        Metrics are means over the updates; there are none before the first.
        """
        returns, lengths, sums = [], [], {}
        before = self._made
        for first in range(0, iterations, _LONGEST):
            count = min(_LONGEST, iterations - first)
            self._state, made, metrics, spent, ends = self._program(self._state, np.int32(count))
            total, length = (np.asarray(rows)[:count] for rows in ends)
            ended = length > 0
            returns.append(total[ended])
            lengths.append(length[ended])
            self._made += int(made)
            self._spent += np.asarray(spent)
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + float(value)
        self._iterations += iterations
        made = self._made - before
        return Progress(
            env_steps=self._iterations * self.num_envs * self.steps,
            updates=self._made,
            metrics={name: total / made for name, total in sums.items()} if made else {},
            episode_returns=np.concatenate(returns),
            episode_lengths=np.concatenate(lengths),
            update_frames=self._made * self.algorithm.config.batch_size,
            generation_seconds=self._spent[GENERATION] if self._timed else None,
            update_seconds=self._spent[UPDATE] if self._timed else None,
        )

    @property
    def state(self) -> OffPolicyState:
        """A tree of arrays; the next `advance` takes their memory."""
        counts = np.array([self._iterations, self._made], np.int64)
        return OffPolicyState(**self._state._asdict(), counts=counts)

    def load_state(self, tree: OffPolicyState) -> None:
        """Continue from a state as another trainer of the same arguments had it."""
        *state, counts = tree
        own = _Running(*(jax.tree.map(np.array, part) for part in state))
        self._state = jax.device_put(own, self._device)
        self._iterations, self._made = (int(count) for count in counts)

    def acting(self) -> Acting:
        """What a policy needs now, in NumPy arrays of their own."""
        return jax.tree.map(np.array, self.algorithm.acting(self._state.learner))

    def close(self) -> None:
        """Release what the environments hold."""
        self._collector.close()

    def _run(self, state: _Running, count: Array) -> Any:
        """`count` iterations: updates, the metrics' sums, seconds, what ended [_LONGEST, T, N]."""
        metrics = jax.eval_shape(self._metrics, state)
        sums = jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), metrics)
        shape = (_LONGEST, self.steps, self.num_envs)
        noted = (jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.int32))

        def one(number: Array, carry: Any) -> Any:
            state, made, sums, watch, noted = carry
            state, experience, ends = self._collected(state)
            watch, experience = phase_ended(watch, GENERATION, experience)
            state = state._replace(ring=self._layout.insert(state.ring, experience))
            updates = jnp.where(state.ring.size >= self._starts, self._updates, 0)
            state, sums = self._learnt(state, updates, sums)
            watch, sums = phase_ended(watch, UPDATE, sums)
            noted = jax.tree.map(
                lambda rows, row: lax.dynamic_update_index_in_dim(rows, row, number, 0),
                noted,
                ends,
            )
            return state, made + updates, sums, watch, noted

        watch, count = started(count)
        carry = (state, jnp.int32(0), sums, watch, noted)
        state, made, sums, watch, noted = lax.fori_loop(0, count, one, carry)
        return state, made, sums, watch.spent, noted

    def _collected(self, state: _Running) -> tuple[_Running, Transitions, Any]:
        """T steps of every environment; returns and lengths, 0 where no episode ended."""
        config = self.algorithm.config
        envs, seen, (out, action, was, _) = self._collector.scanned(
            state.envs,
            state.seen,
            self.algorithm.acting(state.learner),
            state.clock,
            self.steps,
            state.who,
        )
        rollout = Rollout(
            obs=was.obs,
            action=action,
            reward=out.reward,
            terminated=out.terminated,
            truncated=out.truncated,
            next_obs=out.next_obs,
            extras={},
            mask=was.mask,
            next_mask=out.next_mask,
        )
        experience = transitions(namespace("jax"), rollout, config.discount, config.n_step)
        clock = state.clock + np.uint32(self.steps)
        state = state._replace(envs=envs, seen=seen, clock=clock)
        return state, experience, (out.episode_return, out.episode_length)

    def _learnt(self, state: _Running, updates: Array, sums: Any) -> tuple[_Running, Any]:
        """So many updates, each from a batch of the ring."""

        def one(_: Array, carry: Any) -> Any:
            learner, ring, sums = carry
            ring, batch = self._layout.sample(ring, self.algorithm.config.batch_size)
            learner, metrics = self.algorithm.update(learner, batch)
            return learner, ring, jax.tree.map(jnp.add, sums, metrics)

        carry = (state.learner, state.ring, sums)
        learner, ring, sums = lax.fori_loop(0, updates, one, carry)
        return state._replace(learner=learner, ring=ring), sums

    def _example(self, begin: _Running) -> Transitions:
        """Shapes and dtypes of one transition."""
        rows = jax.eval_shape(lambda state: self._collected(state)[1], begin)
        return jax.tree.map(lambda part: jax.ShapeDtypeStruct(part.shape[1:], part.dtype), rows)

    def _metrics(self, state: _Running) -> Any:
        _, batch = self._layout.sample(state.ring, self.algorithm.config.batch_size)
        return self.algorithm.update(state.learner, batch)[1]
