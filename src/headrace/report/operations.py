# SPDX-License-Identifier: Apache-2.0
"""How much arithmetic a step is, counted from the text of its array definition.

The step is traced into a jaxpr, the list of operations that JAX sees, and each elementwise one
counts once for each element it makes. Weights are those of the Livermore loops (McMahon, 1986): 1
for a sum, difference, product, comparison, choice, conversion, shift or bit operation; 4 for a
quotient or a root; 8 for an elementary function. What only moves or shapes data counts nothing. Of
a condition the dearer branch counts; a loop counts as often as it is known to run, else once.

Random numbers count by what they take when made where they are used: the policy's over as many
steps as one block serves, a reset's in the share of steps that end an episode. The wide products
that Philox is made of count as two operations, as processors have them; the 16-bit limbs that JAX
needs would count five times that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import jax
import numpy as np

from headrace.envs.array.base import ArrayEnv, init, observation, step
from headrace.envs.array.namespace import Array, Jax
from headrace.envs.philox import ResetDraws, random_actions

ROOTS = ("div", "rem", "sqrt", "rsqrt", "cbrt")
CIRCULAR = ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")
HYPERBOLIC = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logistic")
EXPONENTIAL = ("exp", "exp2", "expm1", "log", "log1p", "pow", "erf", "erfc", "erf_inv", "lgamma")
WEIGHTS = {
    **dict.fromkeys(ROOTS, 4),
    **dict.fromkeys((*CIRCULAR, *HYPERBOLIC, *EXPONENTIAL), 8),
    "clamp": 2,
}
SHAPING = ("broadcast", "broadcast_in_dim", "expand_dims", "iota", "reshape", "rev", "squeeze")
MOVING = ("concatenate", "copy", "copy_p", "pad", "slice", "split", "transpose", "device_put")
INDEXING = ("dynamic_slice", "dynamic_update_slice", "gather", "scatter")
FREE = frozenset((*SHAPING, *MOVING, *INDEXING, "bitcast_convert_type", "stop_gradient"))
FOLDS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or")
SCANS = ("argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "reduce_xor")
REDUCTIONS = frozenset((*FOLDS, *SCANS))


def operations(function: Callable[..., Any], *arguments: Any) -> float:
    """Weighted operations of one call."""
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def _count(jaxpr: Any) -> float:
    return sum(_count_one(equation) for equation in jaxpr.eqns)


def _count_one(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    inner = [_count(part) for part in _inner_programs(params)]
    if inner:
        return max(inner) if name == "cond" else sum(inner) * params.get("length", 1)
    if name in FREE:
        return 0
    shape = equation.outvars[0].aval.shape
    if name == "convert_element_type":
        same = equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype
        return 0 if same else math.prod(shape)
    if name in REDUCTIONS:
        return math.prod(equation.invars[0].aval.shape)
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        depth = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        return 2 * depth * math.prod(shape)
    if name == "integer_pow":
        return max(abs(params["y"]) - 1, 1).bit_length() * math.prod(shape)
    return WEIGHTS.get(name, 1) * math.prod(shape)


def _inner_programs(params: dict[str, Any]) -> list[Any]:
    found = []
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            program = getattr(part, "jaxpr", part)
            if hasattr(program, "eqns"):
                found.append(program)
    return found


class _WideProducts(Jax):
    """JAX, with a wide product that counts as the two operations that processors have."""

    def multiply_wide(self, a: Array, multiplier: int) -> tuple[Array, Array]:
        """Of the right number of operations, not of the right value."""
        product = a * self.constant(multiplier)
        return product * self.constant(multiplier), product


@dataclass(frozen=True)
class StepOperations:
    """For one environment."""

    step: float
    """Rules, observation, time limit, statistics."""
    policy: float
    """A random action."""
    reset: float

    def per_step(self, ends: float) -> float:
        """With this many ended episodes for each step."""
        return self.step + self.policy + ends * self.reset


def step_operations(env: ArrayEnv[Any], max_steps: int | None) -> StepOperations:
    """Count what a step of this environment is made of."""
    ns, count = _WideProducts(), 64  # what is done once for all environments vanishes in the mean
    state, _ = init(ns, env, count, 0)
    discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    # A block of random bits is 128 coins, or four numbers.
    steps = 128 if discrete else 4
    action = np.zeros(
        (count, *(env.action_space.shape or ())), np.int32 if discrete else np.float32
    )

    def one_step(state: Any, action: Array) -> Any:
        return step(ns, env, state, action, max_steps, autoreset="disabled")

    def one_reset(who: Any, episode: Array) -> Any:
        return observation(ns, env, env.reset(ns, ResetDraws(ns, who, episode)))

    def some_actions(who: Any) -> Array:
        return random_actions(ns, env.action_space, who, 0, steps)

    return StepOperations(
        step=operations(one_step, state, action) / count,
        policy=operations(some_actions, state.who) / (count * steps),
        reset=operations(one_reset, state.who, state.episode) / count,
    )
