# SPDX-License-Identifier: Apache-2.0
"""Rewards for what usually leads to a good end, where the end itself is rare."""

from __future__ import annotations

import numpy as np

from headrace.envs.array.namespace import Array, Namespace
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError

PIECES = np.array([1, 3, 3, 5, 9], np.float32)
"""Of pawn, knight, bishop, rook, queen: the first planes of a chess observation, in this order;
the opponent's begin with plane 6."""

DECISIVE = np.float32(8)
"""Pawns ahead of which more hardly counts."""


def check_material(spec: EnvSpec) -> None:
    """Raise unless an environment's observations are chess boards."""
    shape = spec.observation_space.shape or ()
    if shape[:2] != (8, 8) or len(shape) != 3 or not spec.masked:
        raise HeadraceError(f"{spec.id}: material is counted on chess boards only")


def material(ns: Namespace, obs: Array) -> Array:
    """What the player who sees a board [..., 8, 8, planes] is ahead, in pawns [...]."""
    ahead = ns.to_float(obs[..., 0:5]) - ns.to_float(obs[..., 6:11])
    return ahead.sum(axis=(-3, -2)) @ PIECES


def material_shaping(
    ns: Namespace,
    obs: Array,
    next_obs: Array,
    terminated: Array,
    sign: Array | float,
    discount: float,
) -> Array:
    """What each action won, in pawns; `sign` is -1 where the other player sees `next_obs`.

    γ s Φ(next) - Φ, where Φ is the material that one is ahead, and 0 when the game is over (Ng et
    al., 1999). So it changes what is learnt first, not what is best: whoever stalemates a player
    without an army gives back all that he had won.
    """
    going_on = 1.0 - ns.to_float(terminated)
    return discount * going_on * sign * _ahead(ns, next_obs) - _ahead(ns, obs)


def _ahead(ns: Namespace, obs: Array) -> Array:
    """Material from -1 to 1: what is won after a queen counts little, for it does not help."""
    return ns.xp.tanh(material(ns, obs) / DECISIVE)
