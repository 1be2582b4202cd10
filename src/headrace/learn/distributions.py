# SPDX-License-Identifier: Apache-2.0
"""Distributions of actions, over NumPy and JAX arrays; chance is given, never drawn here.

`policy_uniforms(ns, key, count)` gives it to a policy; `standard_normals` makes normal numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace

_IMPOSSIBLE = np.float32(-1e9)
"""A logit whose probability is 0, exactly, and whose products with 0 still are."""
_LOG_SQRT_2PI = np.float32(0.5 * np.log(2 * np.pi))
_LOG_2 = np.float32(np.log(2))


def standard_normals(ns: Namespace, uniforms: list[Array]) -> Array:
    """Box and Muller: normal numbers [..., n] from 2n arrays in [0, 1)."""
    xp, count = ns.xp, len(uniforms) // 2
    radius = xp.sqrt(-2 * xp.log(1 - xp.stack(uniforms[:count], axis=-1)))  # 1 - u is in (0, 1]
    return radius * xp.cos(np.float32(2 * np.pi) * xp.stack(uniforms[count:], axis=-1))


class Categorical:
    """One of n actions, 0 to n - 1, some of which may be illegal: those have probability 0.

    No gradient reaches an illegal action's logit. Where none is legal, all are alike.
    """

    def __init__(self, ns: Namespace, logits: Array, legal: Array | None = None):
        """`logits` [..., n]; `legal` the same of booleans, see `policy.legal_actions`."""
        xp = ns.xp
        self._ns = ns
        if legal is not None:
            logits = xp.where(legal, logits, _IMPOSSIBLE)
        self._shifted = logits - _constant(ns, logits.max(axis=-1, keepdims=True))
        self._exps = xp.exp(self._shifted)
        self._total = self._exps.sum(axis=-1, keepdims=True)

    @property
    def log_probs(self) -> Array:
        """Of all actions [..., n]."""
        return self._shifted - self._ns.xp.log(self._total)

    def sample(self, uniform: Array) -> Array:
        """Actions [...] by uniform numbers in [0, 1)."""
        xp = self._ns.xp
        # However sums are rounded, the first that reaches the threshold is of a possible action:
        # the others' are taken as 0, and the threshold is in (0, greatest].
        sums = xp.where(self._exps > 0, xp.cumulative_sum(self._exps, axis=-1), 0)
        threshold = (1 - uniform) * sums.max(axis=-1)
        return xp.argmax(sums >= threshold[..., None], axis=-1)

    def mode(self) -> Array:
        """The likeliest actions [...]."""
        return self._ns.xp.argmax(self._shifted, axis=-1)

    def log_prob(self, action: Array) -> Array:
        """Of actions [...]."""
        xp = self._ns.xp
        chosen = action[..., None] == xp.arange(self._shifted.shape[-1])
        return xp.where(chosen, self._shifted, 0).sum(axis=-1) - xp.log(self._total[..., 0])

    def entropy(self) -> Array:
        """[...], of the possible actions."""
        return -(self._exps / self._total * self.log_probs).sum(axis=-1)


@dataclass(frozen=True)
class Gaussian:
    """Independent normal components [..., n]."""

    ns: Namespace
    mean: Array
    log_std: Array

    def sample(self, noise: Array) -> Array:
        """By standard normal numbers [..., n]."""
        return self.mean + self.ns.xp.exp(self.log_std) * noise

    def mode(self) -> Array:
        """The mean."""
        return self.mean

    def log_prob(self, action: Array) -> Array:
        """Of actions [..., n]: [...]."""
        away = (action - self.mean) * self.ns.xp.exp(-self.log_std)
        return (-0.5 * away * away - self.log_std - _LOG_SQRT_2PI).sum(axis=-1)

    def entropy(self) -> Array:
        """[...]."""
        wide = self.log_std + 0 * self.mean
        return (wide + np.float32(0.5) + _LOG_SQRT_2PI).sum(axis=-1)


@dataclass(frozen=True)
class SquashedGaussian:
    """The hyperbolic tangent of a normal vector: components in (-1, 1).

    Probabilities are of those; `ActionRange` takes them to an environment's own range.
    """

    ns: Namespace
    mean: Array
    log_std: Array

    def sample(self, noise: Array) -> tuple[Array, Array]:
        """By standard normal numbers: actions [..., n], and their log-probabilities [...]."""
        normal = Gaussian(self.ns, self.mean, self.log_std)
        before = normal.sample(noise)
        # log(1 - tanh(u)^2), where tanh(u) may be rounded to 1.
        slope = 2 * (_LOG_2 - before - self.ns.xp.logaddexp(-2 * before, np.float32(0)))
        return self.ns.xp.tanh(before), normal.log_prob(before) - slope.sum(axis=-1)

    def mode(self) -> Array:
        """The tangent of the mean: the median."""
        return self.ns.xp.tanh(self.mean)


class ActionRange:
    """Takes flat components, [-1, 1] for a bounded space, to an environment's actions and back."""

    def __init__(self, space: gymnasium.Space):
        assert isinstance(space, gymnasium.spaces.Box)
        self.shape = space.shape
        self.size = int(np.prod(space.shape))
        low, high = (side.reshape(-1).astype(np.float64) for side in (space.low, space.high))
        self._bounded = bool(space.is_bounded())
        if not self._bounded:
            low, high = np.full(self.size, -1.0), np.full(self.size, 1.0)
        self._middle = ((low + high) / 2).astype(np.float32)
        self._half = ((high - low) / 2).astype(np.float32)

    def to_env(self, ns: Namespace, flat: Array) -> Array:
        """Actions [..., *shape] inside the space."""
        if not self._bounded:
            return flat.reshape((*flat.shape[:-1], *self.shape))
        inside = self._middle + self._half * ns.xp.clip(flat, -1, 1)
        return inside.reshape((*flat.shape[:-1], *self.shape))

    def from_env(self, action: Array) -> Array:
        """Flat components [..., n] of actions [..., *shape]."""
        lead = action.shape[: action.ndim - len(self.shape)]
        return (action.reshape((*lead, self.size)) - self._middle) / self._half


def _constant(ns: Namespace, value: Any) -> Any:
    """The same without a gradient."""
    return ns.jax.lax.stop_gradient(value) if ns.name == "jax" else value  # pyright: ignore[reportAttributeAccessIssue]
