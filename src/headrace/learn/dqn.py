# SPDX-License-Identifier: Apache-2.0
"""Deep Q-learning (Mnih et al., 2015), double (van Hasselt et al., 2016), n-step.

a*  = argmax_a Q(s', a)                        over the legal actions
y   = r + γⁿ Q̄(s', a*)
J   = mean huber(Q(s, a) - y)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.philox import random_legal
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn import adam
from headrace.learn.adam import Adam, tree_map
from headrace.learn.algorithm import Algorithm, Metrics, Transitions
from headrace.learn.networks import Dense, Network, dense, dense_init, mlp_for
from headrace.policy import Policy, PolicyKey, legal_actions, policy_uniforms


@dataclass(frozen=True)
class Config:
    """What a run of DQN is set to."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the layers."""
    learning_rate: float = 3e-4
    """Of Adam."""
    double: bool = True
    """Whether the network itself chooses the next action that the target values."""
    huber: float = 1.0
    """The error from which on the loss grows no faster; 0: squared errors throughout."""
    first_epsilon: float = 1.0
    """The share of random actions in the beginning."""
    last_epsilon: float = 0.05
    """The share in the end."""
    epsilon_updates: int = 5000
    """Updates until the end: a straight line leads there."""
    discount: float = 0.99
    """γ: what a reward counts one step later."""
    n_step: int = 3
    """Rewards summed before the value of what followed."""
    target_rate: float = 0.01
    """The share of the way that the target follows at each update."""
    batch_size: int = 256
    """Transitions in an update."""


class Params(NamedTuple):
    """The network."""

    body: tuple
    head: Dense


class Acting(NamedTuple):
    """What an exploring policy needs."""

    params: Params
    epsilon: Array


class DqnState(NamedTuple):
    """All that is learnt and kept."""

    params: Params
    target: Params
    adam: Adam
    updates: Array
    """float32: how many were made; exploration hangs on it."""


class Dqn(Algorithm):
    """For discrete actions, some of which may be illegal; `update` takes `Transitions`."""

    name = "dqn"
    on_policy = False
    config: Config

    def __init__(self, spec: EnvSpec, config: Config | None = None):
        super().__init__(spec, config or Config())
        space = spec.action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise HeadraceError(
                f"DQN needs discrete actions; {spec.id} has {space}: try ppo, sac or td3"
            )
        if spec.players > 1:
            raise HeadraceError(f"DQN is for one player; {spec.id} has {spec.players}: try ppo")
        self.first, self.count = int(space.start), int(space.n)
        self.body: Network = mlp_for(spec.observation_space, self.config.hidden, "relu")

    def init(self, seed: int) -> DqnState:
        """All actions are worth about as much."""
        generator = np.random.default_rng(seed)
        params = Params(
            self.body.init(generator), dense_init(generator, self.body.features, self.count, 0.1)
        )
        zero = np.zeros((), np.float32)
        return DqnState(params, tree_map(np.copy, params), adam.no_steps(params), zero)

    def acting(self, state: DqnState) -> Acting:
        """The network, and how much to explore now."""
        config = self.config
        done = state.updates / np.float32(config.epsilon_updates)
        done = done - (done - 1) * (done > 1)  # at most 1, for the arrays of either library
        epsilon = config.first_epsilon + (config.last_epsilon - config.first_epsilon) * done
        return Acting(state.params, epsilon)

    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Exploring is a random legal action now and then."""
        return Policy(DqnPolicy(self.body, self.first, self.count, library, deterministic), library)

    def update(self, state: DqnState, experience: Transitions) -> tuple[DqnState, Metrics]:
        """One step."""
        import jax

        config = self.config
        target = self.target(state.params, state.target, experience)
        (loss, value), gradient = jax.value_and_grad(self.loss, has_aux=True)(
            state.params, experience.obs, experience.action, target
        )
        params, moments = adam.step(state.params, state.adam, gradient, config.learning_rate)
        follower = adam.follow(state.target, params, config.target_rate)
        metrics = {
            "loss/value": loss,
            "value/mean": value,
            "value/target": target.mean(),
            "policy/epsilon": self.acting(state).epsilon,
        }
        return DqnState(params, follower, moments, state.updates + 1), metrics

    def target(self, params: Params, target: Params, batch: Transitions) -> Array:
        """y [B]."""
        ns = namespace("jax")
        values = action_values(ns, self.body, target, batch.next_obs)
        judge = values
        if self.config.double:
            judge = action_values(ns, self.body, params, batch.next_obs)
        judge = _legal_only(ns, judge, batch.next_mask)
        chosen = _picked(ns, values, ns.xp.argmax(judge, axis=-1))
        return batch.reward + batch.discount * chosen

    def loss(self, params: Params, obs: Array, action: Array, target: Array) -> tuple[Array, Array]:
        """J, and the mean of the values."""
        ns = namespace("jax")
        values = action_values(ns, self.body, params, obs)
        value = _picked(ns, values, action.astype(np.int32) - self.first)
        away = value - target
        loss = 0.5 * away * away
        if edge := self.config.huber:
            far = ns.xp.abs(away)
            loss = ns.xp.where(far > edge, edge * (far - 0.5 * edge), loss)
        return loss.mean(), value.mean()


def action_values(ns: Namespace, body: Network, params: Params, obs: Array) -> Array:
    """Q(s, ·) [B, actions]."""
    return dense(params.head, body.apply(ns, params.body, obs))


def _picked(ns: Namespace, values: Array, action: Array) -> Array:
    """Each row's value [B] at its action, without an index: a gradient by rows is slow."""
    chosen = action[:, None] == ns.xp.arange(values.shape[-1])
    return ns.xp.where(chosen, values, 0).sum(axis=-1)


def _legal_only(ns: Namespace, values: Array, mask: Array | None) -> Array:
    if mask is None:
        return values
    return ns.xp.where(legal_actions(ns, mask, values.shape[-1]), values, -np.inf)


@dataclass(frozen=True)
class DqnPolicy:
    """The best action, or now and then any that is legal."""

    body: Network
    first: int
    count: int
    library: Literal["numpy", "jax"]
    deterministic: bool

    def __call__(
        self, acting: Acting, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Any]]:
        """For observations [N, ...]."""
        ns = namespace(self.library)
        xp = ns.xp
        values = action_values(ns, self.body, acting.params, obs)
        action = xp.argmax(_legal_only(ns, values, mask), axis=-1)
        if not self.deterministic:
            coin, choice = policy_uniforms(ns, key, 2)
            if mask is None:
                # In float32 the product may be rounded up to the count itself.
                other = xp.minimum(ns.xp.floor(choice * self.count), self.count - 1)
            else:
                word = ns.words(choice * np.float32(2**24)) << np.uint32(8)
                other = random_legal(ns, word, mask)
            action = xp.where(coin < acting.epsilon, other.astype(action.dtype), action)
        return action + self.first, {}
