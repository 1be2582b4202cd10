# SPDX-License-Identifier: Apache-2.0
"""On-policy training in one XLA program: steps of the environments, the update, and again."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.collect.base import Request
from headrace.collect.rungs import rung_class
from headrace.collect.traced import Seen, TracedCollector
from headrace.envs.array.namespace import Array
from headrace.envs.philox import Identity
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm, Rollout, State
from headrace.train.cache import use_cache
from headrace.train.stopwatch import GENERATION, UPDATE, phase_ended, runs_on, started
from headrace.train.trainer import Progress

RUNGS = {"native": "native-xla", "array": "xla-fused"}
"""What makes experience inside a program, by the definition it is made from."""
_LONGEST = 64
"""Iterations of a dispatch, at most: what their episodes are noted in has this many rows."""


class CompiledState(NamedTuple):
    """All that a run is: what continues it, bit for bit."""

    learner: State
    envs: Any
    seen: Seen
    who: Identity
    """Whose random numbers the policy draws."""
    clock: Array
    """Steps that every environment has taken, one word: random numbers hang on it."""
    iterations: Array
    """So far: int64, kept on the host."""


class CompiledTrainer:
    """Trains by an on-policy algorithm on environments of array or native definitions.

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
    ):
        """`definition` None takes the native one where there is one."""
        if not algorithm.on_policy:
            raise HeadraceError(f"{algorithm.name} learns off-policy: it needs a replay")
        definition = definition or ("native" if "native" in spec.definitions else "array")
        if definition not in RUNGS:
            raise HeadraceError(
                f"compiled training is from array or native definitions, not {definition}"
            )
        spec.require(definition, "compiled training")
        algorithm.check_size(num_envs * steps)
        use_cache()
        self.algorithm, self.num_envs, self.steps = algorithm, num_envs, steps
        request = Request(spec, num_envs, steps, algorithm.policy("jax"), seed)
        collector = rung_class(RUNGS[definition])(request)
        assert isinstance(collector, TracedCollector)
        self._collector = collector
        self._iterations = 0
        self._spent = np.zeros(2)
        """Seconds in each phase."""
        clock = np.zeros((), np.uint32)
        # All where the environments are, so that the first call's program is every call's.
        self._device = next(iter(jax.tree.leaves(collector.state)[0].devices()))
        self._timed = runs_on(self._device)
        state = (algorithm.init(seed), collector.state, collector.seen, collector.who, clock)
        self._state = jax.device_put(state, self._device)
        self._program = jax.jit(self._run, donate_argnums=0)

    def advance(self, iterations: int) -> Progress:
        """So many times: T steps of every environment, and an update."""
        returns, lengths, sums = [], [], {}
        for first in range(0, iterations, _LONGEST):
            count = min(_LONGEST, iterations - first)
            self._state, metrics, spent, ends = self._program(self._state, np.int32(count))
            total, length = (np.asarray(rows)[:count] for rows in ends)
            ended = length > 0
            returns.append(total[ended])
            lengths.append(length[ended])
            for name, value in metrics.items():
                sums[name] = sums.get(name, 0.0) + float(value)
            self._spent += np.asarray(spent)
        self._iterations += iterations
        frames = self._iterations * self.num_envs * self.steps
        config = self.algorithm.config
        return Progress(
            env_steps=frames,
            updates=self._iterations * config.epochs * config.minibatches,
            metrics={name: total / iterations for name, total in sums.items()},
            episode_returns=np.concatenate(returns),
            episode_lengths=np.concatenate(lengths),
            update_frames=frames * config.epochs,
            generation_seconds=self._spent[GENERATION] if self._timed else None,
            update_seconds=self._spent[UPDATE] if self._timed else None,
        )

    @property
    def state(self) -> CompiledState:
        """A tree of arrays; the next `advance` takes their memory."""
        learner, envs, seen, who, clock = self._state
        iterations = np.array(self._iterations, np.int64)
        return CompiledState(learner, envs, seen, who, clock, iterations)

    def load_state(self, tree: CompiledState) -> None:
        """Continue from a state as another trainer of the same arguments had it."""
        *state, iterations = tree
        self._state = jax.device_put(tuple(jax.tree.map(np.array, state)), self._device)
        self._iterations = int(iterations)

    def acting(self) -> Acting:
        """What a policy needs now, in NumPy arrays of their own."""
        return jax.tree.map(np.array, self.algorithm.acting(self._state[0]))

    def close(self) -> None:
        """Release what the environments hold."""
        self._collector.close()

    def _run(self, state: Any, count: Array) -> Any:
        """`count` iterations; the metrics' sums, seconds, and what ended [_LONGEST, T, N]."""
        metrics = jax.eval_shape(lambda state: self._learnt(*self._collected(state)[:2])[1], state)
        shape = (_LONGEST, self.steps, self.num_envs)
        noted = (jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.int32))
        sums = jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), metrics)

        def one(number: Array, carry: Any) -> Any:
            state, sums, watch, noted = carry
            state, rollout, ends = self._collected(state)
            watch, rollout = phase_ended(watch, GENERATION, rollout)
            state, metrics = self._learnt(state, rollout)
            watch, metrics = phase_ended(watch, UPDATE, metrics)
            noted = jax.tree.map(
                lambda rows, row: lax.dynamic_update_index_in_dim(rows, row, number, 0),
                noted,
                ends,
            )
            return state, jax.tree.map(jnp.add, sums, metrics), watch, noted

        watch, count = started(count)
        state, sums, watch, noted = lax.fori_loop(0, count, one, (state, sums, watch, noted))
        return state, sums, watch.spent, noted

    def _collected(self, state: Any) -> tuple[Any, Rollout, Any]:
        """T steps of every environment; returns and lengths, 0 where no episode ended."""
        learner, envs, seen, who, clock = state
        envs, seen, (out, action, was, extras) = self._collector.scanned(
            envs, seen, self.algorithm.acting(learner), clock, self.steps, who
        )
        rollout = Rollout(
            obs=was.obs,
            action=action,
            reward=out.reward,
            terminated=out.terminated,
            truncated=out.truncated,
            next_obs=out.next_obs,
            extras=extras,
            mask=was.mask,
            next_mask=out.next_mask,
            to_play=was.to_play,
            next_to_play=out.next_to_play,
        )
        clock = clock + np.uint32(self.steps)
        state = (learner, envs, seen, who, clock)
        return state, rollout, (out.episode_return, out.episode_length)

    def _learnt(self, state: Any, rollout: Rollout) -> tuple[Any, Any]:
        """One update."""
        learner, *others = state
        learner, metrics = self.algorithm.update(learner, rollout)
        return (learner, *others), metrics
