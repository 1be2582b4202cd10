# SPDX-License-Identifier: Apache-2.0
"""The policy of an actor and a critic: how on-policy algorithms act, with NumPy or JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.philox import policy_uniforms
from headrace.envs.spec import EnvSpec
from headrace.learn import normaliser
from headrace.learn.actor_critic import ActorCritic, ActorCriticParams
from headrace.learn.distributions import ActionRange, Gaussian, standard_normals
from headrace.learn.normaliser import Moments
from headrace.policy import PolicyKey


class ActorCriticActing(NamedTuple):
    """What a policy needs; `observations` is () where they are not normalised."""

    params: ActorCriticParams
    observations: Any


@dataclass(frozen=True, eq=False)  # spaces have no hash, which a program's function needs
class ActorCriticPolicy:
    """`(acting, obs, mask, key) -> action, extras`, for NumPy or JAX."""

    spec: EnvSpec
    network: ActorCritic
    library: Literal["numpy", "jax"]
    deterministic: bool

    def __call__(
        self, acting: ActorCriticActing, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Array]]:
        """The extras are `log_prob`, `value`, and `drawn` of continuous actions."""
        ns = namespace(self.library)
        params, space = acting.params, self.spec.action_space
        chosen, value = self.network.policy(ns, params, seen(ns, acting.observations, obs), mask)
        if not isinstance(chosen, Gaussian):
            assert isinstance(space, gymnasium.spaces.Discrete)
            if self.deterministic:
                action = chosen.mode()
            else:
                action = chosen.sample(policy_uniforms(ns, key, 1)[0])
            extras = {"log_prob": chosen.log_prob(action), "value": value}
            return (action + int(space.start) if space.start else action), extras
        if self.deterministic:
            drawn = chosen.mode()
        else:
            uniforms = policy_uniforms(ns, key, 2 * chosen.mean.shape[-1])
            drawn = chosen.sample(standard_normals(ns, uniforms))
        extras = {"log_prob": chosen.log_prob(drawn), "value": value, "drawn": drawn}
        return ActionRange(space).to_env(ns, drawn), extras


def seen(ns: Namespace, moments: Moments | tuple, obs: Array) -> Array:
    """Observations as the network gets them."""
    return normaliser.normalise(ns, moments, obs) if isinstance(moments, Moments) else obs
