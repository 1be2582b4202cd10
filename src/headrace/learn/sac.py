# SPDX-License-Identifier: Apache-2.0
"""Soft actor-critic with a learnt temperature (Haarnoja et al., 2018, "Algorithms and
Applications").

    y    = r + γ (min_i Q̄_i(s', a') - α log π(a'|s'))      a' ~ π(s')
    J_Q  = Σ_i mean (Q_i(s, a) - y)²
    J_π  = mean (α log π(ã|s) - min_i Q_i(s, ã))            ã ~ π(s)
    J_α  = mean -log α (log π(ã|s) + H̄)

One update moves critics and actor from the same state: each needs of the other its parameters as
they were, and so the two can run on two devices, side by side, with the results of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn import adam, chance
from headrace.learn.adam import Adam
from headrace.learn.algorithm import Algorithm, Metrics, Transitions
from headrace.learn.blocks import mean_over_blocks
from headrace.learn.critics import CriticState, TwinCritics, Twins
from headrace.learn.distributions import ActionRange, SquashedGaussian, standard_normals
from headrace.learn.networks import (
    Dense,
    Mlp,
    dense,
    dense_init,
    flat_floats,
    observation_size,
)
from headrace.policy import Policy, PolicyKey, policy_uniforms

LEAST_LOG_STD, MOST_LOG_STD = -20.0, 2.0


@dataclass(frozen=True)
class Config:
    """What a run of SAC is set to."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the layers, of the actor and of both critics."""
    actor_learning_rate: float = 3e-4
    """Of the policy."""
    critic_learning_rate: float = 3e-4
    """Of the values."""
    temperature_learning_rate: float = 3e-4
    """Of the logarithm of the temperature."""
    temperature: float = 1.0
    """What entropy is worth in the beginning, in units of reward."""
    learn_temperature: bool = True
    """Whether it follows the entropy that is wanted."""
    target_entropy: float | None = None
    """The entropy that is wanted; by default minus the number of the action's components."""
    discount: float = 0.99
    """γ: what a reward counts one step later."""
    n_step: int = 1
    """Rewards summed before the critics' value of what followed."""
    target_rate: float = 0.005
    """The share of the way that the target critics follow at each update."""
    batch_size: int = 256
    """Transitions in an update."""
    precision: Literal["f32", "bf16"] = "f32"
    """"bf16": products between hidden layers take bfloat16, where the processor has it."""


class ActorParams(NamedTuple):
    """The policy's network: its last layer gives means and log standard deviations."""

    body: tuple[Dense, ...]
    head: Dense


class ActorState(NamedTuple):
    """All that is learnt about acting."""

    params: ActorParams
    adam: Adam
    log_temperature: Array
    temperature_adam: Adam


class SacState(NamedTuple):
    """All that is learnt and kept."""

    actor: ActorState
    critic: CriticState
    updates: Array
    """One word: how many were made; the noise of the next hangs on it."""
    seed: Array
    """Two words."""


class Sac(Algorithm):
    """For continuous actions; `update` takes `Transitions`."""

    name = "sac"
    on_policy = False
    config: Config

    def __init__(self, spec: EnvSpec, config: Config | None = None):
        super().__init__(spec, config or Config())
        self.actions = continuous_actions(spec, "SAC")
        obs_size = observation_size(spec.observation_space)
        self.body = Mlp(obs_size, self.config.hidden, "relu")
        self.critics = TwinCritics(
            obs_size, self.actions.size, self.config.hidden, self.config.precision
        )
        wanted = self.config.target_entropy
        self.target_entropy = -float(self.actions.size) if wanted is None else wanted

    def init(self, seed: int) -> SacState:
        """The policy begins around the middle of the range, about as wide as it."""
        generator = np.random.default_rng(seed)
        head = dense_init(generator, self.body.features, 2 * self.actions.size, 0.01)
        params = ActorParams(self.body.init(generator), head)
        log_temperature = np.log(np.array(self.config.temperature, np.float32))
        actor = ActorState(
            params, adam.no_steps(params), log_temperature, adam.no_steps(log_temperature)
        )
        critic = self.critics.init(generator)
        return SacState(actor, critic, np.zeros((), np.uint32), chance.seed_words(seed))

    def acting(self, state: SacState) -> ActorParams:
        """The actor."""
        return state.actor.params

    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Exploring is sampling."""
        return Policy(SacPolicy(self.body, self.actions, library, deterministic), library)

    def update(self, state: SacState, experience: Transitions) -> tuple[SacState, Metrics]:
        """Both, from the state as it is."""
        critic, values = self.update_critic(
            state.critic, state.actor, experience, state.seed, state.updates
        )
        actor, acts = self.update_actor(
            state.actor, state.critic.params, experience.obs, state.seed, state.updates
        )
        return SacState(actor, critic, state.updates + np.uint32(1), state.seed), values | acts

    def update_critic(
        self, critic: CriticState, actor: ActorState, batch: Transitions, seed: Array, number: Array
    ) -> tuple[CriticState, Metrics]:
        """The critics' part of update `number`; of the actor, parameters and temperature count."""
        import jax

        noise = self._noise(seed, number, chance.NEXT_ACTION, batch.reward.shape[0])

        def block(rows: tuple[Transitions, Array]) -> Any:
            batch, noise = rows
            target = self.critic_target(
                critic.target, actor.params, actor.log_temperature, batch, noise
            )
            action = self.actions.from_env(batch.action)
            found = jax.value_and_grad(self.critic_loss, has_aux=True)(
                critic.params, batch.obs, action, target
            )
            return found, target.mean()

        ((loss, value), gradient), target = mean_over_blocks(block, (batch, noise))
        config = self.config
        params, moments = adam.step(
            critic.params, critic.adam, gradient, config.critic_learning_rate
        )
        follower = adam.follow(critic.target, params, config.target_rate)
        metrics = {"loss/critic": loss, "value/mean": value, "value/target": target}
        return CriticState(params, follower, moments), metrics

    def update_actor(
        self, actor: ActorState, critics: Twins, obs: Array, seed: Array, number: Array
    ) -> tuple[ActorState, Metrics]:
        """The actor's and the temperature's part of update `number`."""
        import jax
        import jax.numpy as jnp

        config = self.config
        noise = self._noise(seed, number, chance.ACTION, obs.shape[0])

        def block(rows: tuple[Array, Array]) -> Any:
            return jax.value_and_grad(self.actor_loss, has_aux=True)(
                actor.params, critics, actor.log_temperature, *rows
            )

        (loss, log_prob), gradient = mean_over_blocks(block, (obs, noise))
        params, moments = adam.step(actor.params, actor.adam, gradient, config.actor_learning_rate)
        log_temperature, temperature_adam = actor.log_temperature, actor.temperature_adam
        if config.learn_temperature:  # J_α is linear in log α: this is its gradient
            log_temperature, temperature_adam = adam.step(
                log_temperature,
                temperature_adam,
                -(log_prob + self.target_entropy),
                config.temperature_learning_rate,
            )
        metrics = {
            "loss/actor": loss,
            "policy/entropy": -log_prob,
            "policy/temperature": jnp.exp(actor.log_temperature),
        }
        return ActorState(params, moments, log_temperature, temperature_adam), metrics

    def critic_target(
        self,
        target: Twins,
        actor: ActorParams,
        log_temperature: Array,
        batch: Transitions,
        noise: Array,
    ) -> Array:
        """y [B], for noise [B, n] of the next actions."""
        ns = namespace("jax")
        action, log_prob = self._distribution(actor, batch.next_obs).sample(noise)
        first, second = self.critics.values(target, batch.next_obs, action)
        soft = ns.xp.minimum(first, second) - ns.xp.exp(log_temperature) * log_prob
        return batch.reward + batch.discount * soft

    def critic_loss(
        self, params: Twins, obs: Array, action: Array, target: Array
    ) -> tuple[Array, Array]:
        """J_Q, and the mean of the values."""
        values = self.critics.values(params, obs, action)
        loss = ((values - target) ** 2).mean(axis=1).sum()
        return loss, values[0].mean()

    def actor_loss(
        self, params: ActorParams, critics: Twins, log_temperature: Array, obs: Array, noise: Array
    ) -> tuple[Array, Array]:
        """J_π, and the mean of the log-probabilities."""
        ns = namespace("jax")
        action, log_prob = self._distribution(params, obs).sample(noise)
        first, second = self.critics.values(critics, obs, action, "actions")
        loss = ns.xp.exp(log_temperature) * log_prob - ns.xp.minimum(first, second)
        return loss.mean(), log_prob.mean()

    def _distribution(self, params: ActorParams, obs: Array) -> SquashedGaussian:
        """π(·|s), with a gradient of the parameters."""
        from headrace.learn.native_mlp import outputs

        ns, layers = namespace("jax"), (*params.body, params.head)
        out = outputs((layers,), flat_floats(ns, obs), self.config.precision, False, -1)
        return squashed(ns, out[0])

    def _noise(self, seed: Array, number: Array, stream: int, count: int) -> Array:
        return chance.normals(seed, number, stream, (count, self.actions.size))


def continuous_actions(spec: EnvSpec, who: str) -> ActionRange:
    """The range of the environment's actions, which must be continuous and bounded."""
    space = spec.action_space
    if not isinstance(space, gymnasium.spaces.Box):
        raise HeadraceError(
            f"{who} needs continuous actions; {spec.id} has {space}: try ppo or dqn"
        )
    if not space.is_bounded():
        raise HeadraceError(f"{who} needs bounded actions; {spec.id} has {space}")
    return ActionRange(space)


def squashed(ns: Namespace, out: Array) -> SquashedGaussian:
    """From means and log standard deviations [B, 2n]."""
    size = out.shape[-1] // 2
    log_std = ns.xp.clip(out[..., size:], LEAST_LOG_STD, MOST_LOG_STD)
    return SquashedGaussian(ns, out[..., :size], log_std)


@dataclass(frozen=True)
class SacPolicy:
    """Samples, or takes the median."""

    body: Mlp
    actions: ActionRange
    library: Literal["numpy", "jax"]
    deterministic: bool

    def __call__(
        self, params: ActorParams, obs: Array, mask: Array | None, key: PolicyKey
    ) -> tuple[Array, dict[str, Any]]:
        """For observations [N, ...]."""
        ns = namespace(self.library)
        choice = squashed(ns, dense(params.head, self.body.apply(ns, params.body, obs)))
        if self.deterministic:
            flat = choice.mode()
        else:
            uniforms = policy_uniforms(ns, key, 2 * self.actions.size)
            flat = choice.sample(standard_normals(ns, uniforms))[0]
        return self.actions.to_env(ns, flat), {}
