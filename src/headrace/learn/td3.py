# SPDX-License-Identifier: Apache-2.0
"""Twin delayed deep deterministic policy gradient (Fujimoto et al., 2018).

    ã    = clip(π̄(s') + clip(ε, -c, c), -1, 1)            ε ~ N(0, σ̃)
    y    = r + γ min_i Q̄_i(s', ã)
    J_Q  = Σ_i mean (Q_i(s, a) - y)²
    J_π  = -mean Q_1(s, π(s))                               every d-th update, as the targets follow

The target of the actor is the actor's, and is all that the critics need of it. Both parts of an
update start from the same state, so that they can run on two devices with the results of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from headrace.envs.array.namespace import Array, namespace
from headrace.envs.spec import EnvSpec
from headrace.learn import adam, chance
from headrace.learn.adam import Adam, tree_map
from headrace.learn.algorithm import Algorithm, Metrics, Transitions
from headrace.learn.blocks import mean_over_blocks
from headrace.learn.critics import CriticState, TwinCritics, Twins
from headrace.learn.distributions import ActionRange, standard_normals
from headrace.learn.networks import (
    Dense,
    Mlp,
    dense,
    dense_init,
    flat_floats,
    observation_size,
)
from headrace.learn.sac import continuous_actions
from headrace.policy import Policy, PolicyKey, policy_uniforms


@dataclass(frozen=True)
class Config:
    """What a run of TD3 is set to. Noise is in units of half the action's range."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the layers, of the actor and of both critics."""
    actor_learning_rate: float = 3e-4
    """Of the policy."""
    critic_learning_rate: float = 3e-4
    """Of the values."""
    exploration_noise: float = 0.1
    """The standard deviation of what is added to actions that explore."""
    target_noise: float = 0.2
    """σ̃: the same for the next actions that the target values."""
    target_noise_clip: float = 0.5
    """c: how far that noise goes."""
    actor_delay: int = 2
    """d: critic updates for each of the actor's and of the targets'."""
    discount: float = 0.99
    """γ: what a reward counts one step later."""
    n_step: int = 1
    """Rewards summed before the critics' value of what followed."""
    target_rate: float = 0.005
    """The share of the way that the targets follow at each update."""
    batch_size: int = 256
    """Transitions in an update."""
    precision: Literal["f32", "bf16"] = "f32"
    """"bf16": products between hidden layers take bfloat16, where the processor has it."""


class ActorParams(NamedTuple):
    """The policy's network."""

    body: tuple[Dense, ...]
    head: Dense


class ActorState(NamedTuple):
    """All that is learnt about acting."""

    params: ActorParams
    target: ActorParams
    adam: Adam
    loss: Array
    """Of the last update that was the actor's too."""


class Td3State(NamedTuple):
    """All that is learnt and kept."""

    actor: ActorState
    critic: CriticState
    updates: Array
    """One word: how many were made; the noise of the next hangs on it."""
    seed: Array
    """Two words."""


class Td3(Algorithm):
    """For continuous actions; `update` takes `Transitions`."""

    name = "td3"
    on_policy = False
    config: Config

    def __init__(self, spec: EnvSpec, config: Config | None = None):
        super().__init__(spec, config or Config())
        self.actions = continuous_actions(spec, "TD3")
        obs_size = observation_size(spec.observation_space)
        self.body = Mlp(obs_size, self.config.hidden, "relu")
        self.critics = TwinCritics(
            obs_size, self.actions.size, self.config.hidden, self.config.precision
        )

    def init(self, seed: int) -> Td3State:
        """The policy begins near the middle of the range."""
        generator = np.random.default_rng(seed)
        head = dense_init(generator, self.body.features, self.actions.size, 0.01)
        params = ActorParams(self.body.init(generator), head)
        actor = ActorState(
            params, tree_map(np.copy, params), adam.no_steps(params), np.zeros((), np.float32)
        )
        critic = self.critics.init(generator)
        return Td3State(actor, critic, np.zeros((), np.uint32), chance.seed_words(seed))

    def acting(self, state: Td3State) -> ActorParams:
        """The actor."""
        return state.actor.params

    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Exploring adds noise."""
        noise = 0.0 if deterministic else self.config.exploration_noise
        return Policy(Td3Policy(self.body, self.actions, library, noise), library)

    def update(self, state: Td3State, experience: Transitions) -> tuple[Td3State, Metrics]:
        """Both, from the state as it is."""
        critic, values = self.update_critic(
            state.critic, state.actor.target, experience, state.seed, state.updates
        )
        actor, acts = self.update_actor(
            state.actor, state.critic.params, experience.obs, state.updates
        )
        return Td3State(actor, critic, state.updates + np.uint32(1), state.seed), values | acts

    def update_critic(
        self,
        critic: CriticState,
        actor_target: ActorParams,
        batch: Transitions,
        seed: Array,
        number: Array,
    ) -> tuple[CriticState, Metrics]:
        """The critics' part of update `number`."""
        import jax

        config = self.config
        shape = (batch.reward.shape[0], self.actions.size)
        noise = chance.normals(seed, number, chance.NEXT_ACTION, shape)

        def block(rows: tuple[Transitions, Array]) -> Any:
            batch, noise = rows
            target = self.critic_target(critic.target, actor_target, batch, noise)
            action = self.actions.from_env(batch.action)
            found = jax.value_and_grad(self.critic_loss, has_aux=True)(
                critic.params, batch.obs, action, target
            )
            return found, target.mean()

        ((loss, value), gradient), target = mean_over_blocks(block, (batch, noise))
        params, moments = adam.step(
            critic.params, critic.adam, gradient, config.critic_learning_rate
        )
        rate = jax.numpy.where(self._actor_is_due(number), config.target_rate, 0.0)
        follower = adam.follow(critic.target, params, rate)
        metrics = {"loss/critic": loss, "value/mean": value, "value/target": target}
        return CriticState(params, follower, moments), metrics

    def update_actor(
        self, actor: ActorState, critics: Twins, obs: Array, number: Array
    ) -> tuple[ActorState, Metrics]:
        """The actor's part of update `number`, which is nothing in most."""
        import jax

        config = self.config

        def moved(actor: ActorState) -> ActorState:
            loss, gradient = mean_over_blocks(
                lambda rows: jax.value_and_grad(self.actor_loss)(actor.params, critics, rows), obs
            )
            params, moments = adam.step(
                actor.params, actor.adam, gradient, config.actor_learning_rate
            )
            follower = adam.follow(actor.target, params, config.target_rate)
            return ActorState(params, follower, moments, loss)

        actor = jax.lax.cond(self._actor_is_due(number), moved, lambda actor: actor, actor)
        return actor, {"loss/actor": actor.loss}

    def _actor_is_due(self, number: Array) -> Array:
        """Whether update `number` moves the actor and the targets."""
        return number % np.uint32(self.config.actor_delay) == 0

    def critic_target(
        self, target: Twins, actor_target: ActorParams, batch: Transitions, noise: Array
    ) -> Array:
        """y [B], for standard normal noise [B, n]."""
        ns = namespace("jax")
        config = self.config
        clip = config.target_noise_clip
        noise = ns.xp.clip(config.target_noise * noise, -clip, clip)
        action = self._action(actor_target, batch.next_obs) + noise
        action = ns.xp.clip(action, -1, 1)
        first, second = self.critics.values(target, batch.next_obs, action)
        return batch.reward + batch.discount * ns.xp.minimum(first, second)

    def critic_loss(
        self, params: Twins, obs: Array, action: Array, target: Array
    ) -> tuple[Array, Array]:
        """J_Q, and the mean of the values."""
        values = self.critics.values(params, obs, action)
        loss = ((values - target) ** 2).mean(axis=1).sum()
        return loss, values[0].mean()

    def actor_loss(self, params: ActorParams, critics: Twins, obs: Array) -> Array:
        """J_π, by the first of the twins."""
        action = self._action(params, obs)
        return -self.critics.values(critics[:1], obs, action, "actions").mean()

    def _action(self, params: ActorParams, obs: Array) -> Array:
        """π(s), with a gradient of the parameters."""
        from headrace.learn.native_mlp import outputs

        ns, layers = namespace("jax"), (*params.body, params.head)
        out = outputs((layers,), flat_floats(ns, obs), self.config.precision, False, -1)
        return ns.xp.tanh(out[0])


@dataclass(frozen=True)
class Td3Policy:
    """What it holds best, and noise on it."""

    body: Mlp
    actions: ActionRange
    library: Literal["numpy", "jax"]
    noise: float

    def __call__(
        self, params: ActorParams, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Any]]:
        """For observations [N, ...]."""
        ns = namespace(self.library)
        flat = ns.xp.tanh(dense(params.head, self.body.apply(ns, params.body, obs)))
        if self.noise:
            uniforms = policy_uniforms(ns, key, 2 * self.actions.size)
            flat = flat + np.float32(self.noise) * standard_normals(ns, uniforms)
        return self.actions.to_env(ns, flat), {}
