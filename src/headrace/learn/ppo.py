# SPDX-License-Identifier: Apache-2.0
"""Proximal policy optimisation (Schulman et al., 2017): discrete, continuous, masked, by turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace, namespace
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.learn import adam, chance, normaliser
from headrace.learn.actor import ActorCriticActing, ActorCriticPolicy
from headrace.learn.actor_critic import ActorCritic, ActorCriticParams, NetworkName, actor_critic
from headrace.learn.algorithm import Algorithm, Metrics, Rollout
from headrace.learn.networks import Activation, Mlp
from headrace.learn.ppo_samples import Samples, order, samples
from headrace.learn.shaping import check_material
from headrace.policy import Policy

_SMALL = 64
"""Width of layers up to which the host's own update is the faster one, as measured."""

METRICS = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clipped")
"""What an update tells: means over its minibatches."""


@dataclass(frozen=True)
class Config:
    """What a run of PPO is set to."""

    learning_rate: float = 3e-4
    """Adam's, at the beginning."""
    clip: float = 0.2
    """How far the new policy's probability of an action may be taken from the old one's."""
    anneal_steps: int = 0
    """Environment steps over which learning rate and clip fall linearly to 0; 0: never."""
    discount: float = 0.99
    """What a reward counts one step later: γ."""
    trace: float = 0.95
    """How far advantages look beyond one step: λ of GAE."""
    epochs: int = 4
    """How often each sample is learnt from."""
    minibatches: int = 4
    """Into how many parts the samples are divided, each for one step of the optimiser."""
    value_weight: float = 0.5
    """Of half the squared error of the values, in the loss."""
    entropy_weight: float = 0.0
    """Of the policy's entropy, as a bonus."""
    max_grad_norm: float = 0.5
    """A longer gradient is shortened to this."""
    normalise_advantages: bool = True
    """Whether a minibatch's advantages are brought to mean 0 and deviation 1."""
    normalise_observations: bool = False
    """Whether the network sees observations less their mean, over their deviation, so far."""
    scale_rewards: bool = False
    """Whether rewards are divided by the deviation of discounted returns so far."""
    material_weight: float = 0.0
    """Of a pawn's worth of material, as the potential that shapes what is learnt from, in chess."""
    network: NetworkName = "auto"
    """"mlp", "conv" for images, "residual" for boards; "auto" goes by the observations."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the layers of "mlp"."""
    activation: Activation = "tanh"
    """Behind each of them."""
    separate: bool = True
    """Whether the value has layers of its own, in "mlp"."""
    channels: int = 64
    """Features of each square, in "residual"."""
    blocks: int = 4
    """Residual blocks."""
    log_std: float = 0.0
    """The logarithm of continuous actions' deviation at the beginning, where 1 is half a range."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "clip", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise HeadraceError(f"{name} is {getattr(self, name)}; it must be more than 0")
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise HeadraceError(f"{name} is {getattr(self, name)}; it must be from 0 to 1")
        for name in ("epochs", "minibatches"):
            if getattr(self, name) < 1:
                raise HeadraceError(f"{name} is {getattr(self, name)}; it must be at least 1")


class PpoState(NamedTuple):
    """All that is learnt, and what learning goes on from."""

    params: ActorCriticParams
    adam: adam.Adam
    observations: Any
    """Moments, or () where observations are not normalised."""
    rewards: Any
    """Moments of discounted sums, or () where rewards are not scaled."""
    seed: Array
    rollouts: Array
    """How many were learnt from: one word."""


class Ppo(Algorithm):
    """PPO for one environment; a sample's ratio is to the policy that chose its action."""

    name = "ppo"
    on_policy = True
    config: Config

    def __init__(self, spec: EnvSpec, config: Config | None = None):
        super().__init__(spec, config or Config())
        config = self.config
        if config.material_weight:
            check_material(spec)
        space = spec.observation_space
        if config.normalise_observations and isinstance(space, gymnasium.spaces.Discrete):
            raise HeadraceError(
                f"{spec.id}: observations are numbers that only name something; "
                "normalise_observations is for those that measure"
            )
        self.network: ActorCritic = actor_critic(
            spec,
            network=config.network,
            hidden=config.hidden,
            activation=config.activation,
            separate=config.separate,
            channels=config.channels,
            blocks=config.blocks,
            log_std=config.log_std,
        )
        self._policies: dict[tuple[str, bool], Policy] = {}

    def init(self, seed: int) -> PpoState:
        """A policy that prefers nothing yet."""
        config = self.config
        params = self.network.init(np.random.default_rng(seed))
        shape = self.spec.observation_space.shape or ()
        return PpoState(
            params,
            adam.no_steps(params),
            normaliser.no_moments(shape) if config.normalise_observations else (),
            normaliser.no_moments() if config.scale_rewards else (),
            chance.seed_words(seed),
            np.zeros((), np.uint32),
        )

    def acting(self, state: PpoState) -> ActorCriticActing:
        """The network, and how observations are normalised."""
        return ActorCriticActing(state.params, state.observations)

    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Chance by its probabilities, or the likeliest action."""
        kind = (library, deterministic)
        if kind not in self._policies:  # once: a program is compiled for a function, not its like
            self._policies[kind] = Policy(
                ActorCriticPolicy(self.spec, self.network, *kind), library
            )
        return self._policies[kind]

    def update(self, state: PpoState, experience: Rollout) -> tuple[PpoState, Metrics]:
        """All epochs over one rollout [T, N]."""
        import jax
        import jax.numpy as jnp

        config, ns, size = self.config, namespace("jax"), experience.reward.size
        state, found = samples(ns, self, state, experience)
        left = self.left(ns, state, size)
        chosen_blocks, blocks = order(ns, self, state, size)

        def shaped(rows: Array) -> Array:  # [T, N, ...] to [blocks, samples of a block, ...]
            return rows.reshape((blocks, -1, *rows.shape[2:]))

        in_blocks = jax.tree.map(shaped, found)

        def one(carry: Any, chosen: Array) -> Any:
            params, moments = carry
            part = jax.tree.map(lambda rows: rows[chosen].reshape((-1, *rows.shape[2:])), in_blocks)
            gradient, metrics = jax.grad(self._loss, has_aux=True)(params, part, left)
            norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(gradient)))
            shorter = jnp.minimum(1, config.max_grad_norm / (norm + 1e-6))
            gradient = jax.tree.map(lambda leaf: leaf * shorter, gradient)
            return adam.step(params, moments, gradient, config.learning_rate * left), metrics

        (params, moments), metrics = jax.lax.scan(one, (state.params, state.adam), chosen_blocks)
        means: Metrics = dict(zip(METRICS, metrics.mean(axis=0), strict=True))
        state = state._replace(params=params, adam=moments, rollouts=state.rollouts + 1)
        return state, means

    @property
    def prefers_host(self) -> bool:
        """For small networks of dense layers, where the native core takes their steps."""
        from headrace.learn.ppo_host import has_native

        body = self.network.body
        return isinstance(body, Mlp) and has_native(body) and max(body.hidden) <= _SMALL

    def host_update(self) -> Callable[[PpoState, Rollout], tuple[PpoState, Metrics]]:
        """For networks of dense layers."""
        from headrace.learn.ppo_host import HostUpdate

        return HostUpdate(self)

    def left(self, ns: Namespace, state: PpoState, size: int) -> Array | float:
        """The part of learning rate and clip that is left before a rollout of so many samples."""
        if not self.config.anneal_steps:
            return 1.0
        done = state.rollouts.astype(np.float32) * np.float32(size / self.config.anneal_steps)
        return ns.xp.maximum(1 - done, 0)

    @property
    def steps_per_update(self) -> int:
        """Steps of the optimiser in an `update`."""
        return self.config.epochs * self.config.minibatches

    def check_size(self, size: int) -> None:
        """Raise unless rollouts of so many samples can be divided."""
        if size % self.config.minibatches:
            raise HeadraceError(
                f"{size} samples do not divide into {self.config.minibatches} minibatches"
            )

    def _loss(
        self, params: ActorCriticParams, part: Samples, left: Array | float
    ) -> tuple[Array, Array]:
        """Of a minibatch [B, ...]: the clipped objective, the values' error and the entropy."""
        import jax.numpy as jnp

        config, ns = self.config, namespace("jax")
        policy, value = self.network.policy(ns, params, part.obs, part.mask)
        log_ratio = policy.log_prob(part.action) - part.log_prob
        ratio = jnp.exp(log_ratio)

        advantage = part.advantage
        if config.normalise_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clip = config.clip * left
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)
        policy_loss = -gain.mean()
        value_loss = 0.5 * ((value - part.value_target) ** 2).mean()
        entropy = policy.entropy().mean()
        loss = policy_loss + config.value_weight * value_loss - config.entropy_weight * entropy
        kl = (ratio - 1 - log_ratio).mean()  # Schulman's estimate: unbiased, never below 0
        clipped = (jnp.abs(ratio - 1) > clip).mean()
        return loss, jnp.stack([policy_loss, value_loss, entropy, kl, clipped])
