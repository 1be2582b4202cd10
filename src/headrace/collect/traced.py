# SPDX-License-Identifier: Apache-2.0
"""What the rungs inside XLA share: policies in programs, and the program of a whole batch."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.collect.base import Collector, Request
from headrace.collect.batch import Batch
from headrace.envs.array.base import Step
from headrace.envs.array.namespace import Array, namespace
from headrace.envs.philox import (
    ActionBlocks,
    Identity,
    action_at,
    action_blocks,
    action_words,
    identify,
    legal_blocks,
    random_legal,
)
from headrace.errors import HeadraceError
from headrace.policy import Policy, PolicyKey, action_dtype


class Moment(NamedTuple):
    """When and whose some steps are: arguments of a program that is compiled once for all."""

    who: Identity
    clock: Array
    """Steps taken before, one word: what a policy's random numbers hang on."""
    blocks: ActionBlocks | None
    """What random actions are made from; None where a policy acts."""


class Seen(NamedTuple):
    """What there is to see of all environments at one moment."""

    obs: Array
    mask: Array | None = None
    to_play: Array | None = None


class TracedPolicy:
    """A JAX policy, or the random one, as part of a program."""

    def __init__(self, request: Request):
        self._ns = namespace("jax")
        self._space = request.spec.action_space
        self._masked = request.spec.masked
        self._num_envs = request.num_envs
        self._dtype = action_dtype(self._space)
        self._apply = request.policy.apply if isinstance(request.policy, Policy) else None
        self.who = identify(self._ns, request.num_envs, request.seed, request.first_env)

    def moment(self, clock: int, steps: int) -> Moment:
        """Of the `steps` steps from `clock` on."""
        blocks = None
        if self._apply is None:
            blocks = (
                legal_blocks(clock, steps)
                if self._masked
                else action_blocks(self._space, clock, steps)
            )
        return Moment(self.who, np.array(clock & 0xFFFFFFFF, np.uint32), blocks)

    def prepare(self, moment: Moment) -> Array | None:
        """What is computed for all steps at once, in front of them."""
        return None if moment.blocks is None else action_words(self._ns, moment.who, moment.blocks)

    def act(
        self, params: Any, seen: Seen, moment: Moment, prepared: Array | None, t: Array
    ) -> tuple[Array, dict[str, Array]]:
        """Actions of the moment's step `t`, and the policy's own outputs."""
        if self._apply is None:
            assert moment.blocks is not None
            if self._masked:
                words = prepared[moment.blocks.draw + t]  # pyright: ignore[reportOptionalSubscript]
                return random_legal(self._ns, words, seen.mask).astype(self._dtype), {}
            components = int(np.prod(self._space.shape or ()))
            draw = moment.blocks.draw + t * components
            action = action_at(self._ns, self._space, prepared, draw)
            if isinstance(self._space, gymnasium.spaces.Discrete) and self._space.start:
                action = action.astype(jnp.int32) + int(self._space.start)
            return action.astype(self._dtype), {}
        key = PolicyKey(moment.who, moment.clock + self._ns.words(t))
        action, extras = self._apply(params, seen.obs, seen.mask, key)
        return self._checked(action), extras

    def _checked(self, action: Array) -> Array:
        """A choice outside the space becomes the nearest in it: a program cannot raise."""
        wanted = (self._num_envs, *(self._space.shape or ()))
        if action.shape != wanted:
            raise HeadraceError(f"the policy's actions have shape {action.shape}, not {wanted}")
        if isinstance(self._space, gymnasium.spaces.Discrete):
            first = int(self._space.start)
            action = jnp.clip(action, first, first + int(self._space.n) - 1)
        return action.astype(self._dtype)


class TracedCollector(Collector):
    """Policy and environment in one XLA program, which runs K steps a call.

    Batches are dense JAX arrays. The program is given the last batch's memory for the next one, so
    that the arrays of a batch are gone once the next is asked for.
    """

    policies = ("random", "jax")

    def __init__(self, request: Request):
        super().__init__(request)
        self._policy = TracedPolicy(request)
        self._fused = min(request.fused_steps or request.steps, request.steps)
        self.state, self._seen = self._start()
        self._rows: Any = None
        self._program = jax.jit(self._run, static_argnames="count", donate_argnums=(0, 1, 2))

    @abstractmethod
    def _start(self) -> tuple[Any, Seen]:
        """States of environments that were just reset, and what there is to see of them."""

    @abstractmethod
    def _step(self, state: Any, action: Array) -> tuple[Any, Step]:
        """One step of all environments, traced."""

    def collect(self, params: Any = None) -> Batch:
        """K steps a call; the results may still be under way when it returns, as usual in JAX."""
        steps = self.request.steps
        if self._rows is None:
            self._rows = self._make_rows(params)
        for first in range(0, steps, self._fused):
            count = min(self._fused, steps - first)
            moment = self._policy.moment(self.clock + first, count)
            self.state, self._seen, self._rows = self._program(
                self.state, self._seen, self._rows, params, moment, np.int32(first), count=count
            )
        self.clock += steps
        out, action, seen, extras = self._rows
        last = self._seen
        return Batch(
            obs=seen.obs,
            last_obs=last.obs,
            action=action,
            reward=out.reward,
            terminated=out.terminated,
            truncated=out.truncated,
            final_obs=out.next_obs,
            end_at=None,
            episode_return=out.episode_return,
            episode_length=out.episode_length,
            extras=dict(extras),
            mask=seen.mask,
            last_mask=last.mask,
            final_mask=out.next_mask,
            to_play=seen.to_play,
            last_to_play=last.to_play,
            final_to_play=out.next_to_play,
        )

    def scanned(
        self,
        state: Any,
        seen: Seen,
        params: Any,
        clock: Array,
        steps: int,
        who: Identity | None = None,
    ) -> tuple[Any, Seen, Any]:
        """Steps of a policy as a part of another program, from the step `clock`, one word, on.

        `who` is the collector's own; a program that takes it as an argument is not compiled anew
        for every seed.

        Rows [steps, N, ...] of what `Step` says, without what follows a reset; actions; what was
        `Seen`; and the policy's own outputs.
        """
        moment = Moment(self.who if who is None else who, clock, None)

        def one(carry: tuple[Any, Seen], t: Array) -> tuple[tuple[Any, Seen], Any]:
            state, seen, row = self._row(*carry, params, moment, None, t)
            return (state, seen), row

        (state, seen), rows = lax.scan(one, (state, seen), jnp.arange(steps))
        return state, seen, rows

    @property
    def who(self) -> Identity:
        """Whose random numbers the policy draws."""
        return self._policy.who

    @property
    def seen(self) -> Seen:
        """What there is to see of all environments now."""
        return self._seen

    def _run(
        self,
        state: Any,
        seen: Seen,
        rows: Any,
        params: Any,
        moment: Moment,
        first: Array,
        count: int,
    ) -> tuple[Any, Seen, Any]:
        """`count` steps, written to `rows` from row `first` on: the program."""
        prepared = self._policy.prepare(moment)

        def one(t: Array, carry: tuple[Any, Seen, Any]) -> tuple[Any, Seen, Any]:
            state, seen, rows = carry
            state, next_seen, row = self._row(state, seen, params, moment, prepared, t)
            put = partial(lax.dynamic_update_index_in_dim, index=first + t, axis=0)
            return state, next_seen, jax.tree.map(put, rows, row)

        return lax.fori_loop(0, count, one, (state, seen, rows))

    def _row(
        self, state: Any, seen: Seen, params: Any, moment: Moment, prepared: Any, t: Array
    ) -> tuple[Any, Seen, Any]:
        """One step, and what a batch keeps of it."""
        action, extras = self._policy.act(params, seen, moment, prepared, t)
        state, out = self._step(state, action)
        kept = out._replace(obs=(), mask=None, to_play=None)
        return state, Seen(out.obs, out.mask, out.to_play), (kept, action, seen, extras)

    def _make_rows(self, params: Any) -> Any:
        """The memory of a batch, of the shapes that one step has."""

        def one(state: Any, seen: Seen, params: Any, moment: Moment) -> Any:
            prepared = self._policy.prepare(moment)
            return self._row(state, seen, params, moment, prepared, jnp.int32(0))[-1]

        moment = self._policy.moment(0, 1)
        shapes = jax.eval_shape(one, self.state, self._seen, params, moment)
        steps = self.request.steps
        zeros = partial(jax.tree.map, lambda row: jnp.zeros((steps, *row.shape), row.dtype), shapes)
        return jax.jit(zeros)()

    @property
    def calls_per_step(self) -> float:
        """A call does many steps."""
        return -(-self.request.steps // self._fused) / self.request.steps
