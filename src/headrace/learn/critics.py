# SPDX-License-Identifier: Apache-2.0
"""Twin critics of continuous actions (Fujimoto et al., 2018), which SAC and TD3 share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array, namespace
from headrace.learn.adam import Adam, no_steps, tree_map
from headrace.learn.networks import Dense, Mlp, dense_init, flat_floats

if TYPE_CHECKING:
    from headrace.learn.native_mlp import Precision


class CriticParams(NamedTuple):
    """One of the twins."""

    body: tuple[Dense, ...]
    head: Dense


Twins = tuple[CriticParams, CriticParams]


class CriticState(NamedTuple):
    """All that is learnt about values."""

    params: Twins
    target: Twins
    adam: Adam


@dataclass(frozen=True)
class TwinCritics:
    """Two networks that value an observation and a flat action in [-1, 1] together."""

    obs_size: int
    action_size: int
    hidden: tuple[int, ...]
    precision: Precision

    @property
    def _body(self) -> Mlp:
        return Mlp(self.obs_size + self.action_size, self.hidden, "relu")

    def init(self, generator: np.random.Generator) -> CriticState:
        """Two different ones, and targets like them."""

        def one() -> CriticParams:
            return CriticParams(
                self._body.init(generator), dense_init(generator, self._body.features, 1)
            )

        params = (one(), one())
        return CriticState(params, tree_map(np.copy, params), no_steps(params))

    def values(
        self,
        params: tuple[CriticParams, ...],
        obs: Array,
        action: Array,
        learning: Literal["critics", "actions"] = "critics",
    ) -> Array:
        """What each of them says, [critics, B]; JAX arrays.

        There is a gradient of the critics' parameters, or of the actions.
        """
        import jax.numpy as jnp

        from headrace.learn.native_mlp import outputs

        x = jnp.concatenate([flat_floats(namespace("jax"), obs), action], axis=-1)
        nets = tuple((*twin.body, twin.head) for twin in params)
        frozen = learning == "actions"
        first = self.obs_size if frozen else -1
        return outputs(nets, x, self.precision, frozen, first)[..., 0]
