# SPDX-License-Identifier: Apache-2.0
"""Actor and critics on devices of their own: two programs that run side by side.

An update of SAC moves both from the same state: the critics' part needs of the actor its parameters
as they were, and the actor's of the critics theirs. So each device has its own part of the state,
and a copy of what it needs of the other's; after every update these two copies are exchanged, and
nothing else. With both parts on one device the same programs run, and give the same.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Algorithm, State, Transitions
from headrace.runtime.updates import Updated, Updates
from headrace.runtime.xla_updates import flat, one_device
from headrace.train.config import Settings


def make_updates(algorithm: Algorithm, settings: Settings) -> Updates:
    """On the devices that the settings name; on JAX's own choice where they name none."""
    if settings.actor_device is None and settings.critic_device is None:
        return one_device(algorithm)
    if not hasattr(algorithm, "update_actor"):
        raise HeadraceError(
            f"{algorithm.name} has no actor beside a critic: --actor-device and --critic-device "
            "are for sac and td3"
        )
    return TwoDevices(
        algorithm, find_device(settings.actor_device), find_device(settings.critic_device)
    )


def find_device(name: str | None) -> Any:
    """By "platform:number"; the first of all where there is no name."""
    devices = jax.devices()
    if name is None:
        return devices[0]
    for device in devices:
        if name in (f"{device.platform}:{device.id}", str(device.id)):
            return device
    known = ", ".join(f"{device.platform}:{device.id}" for device in devices)
    raise HeadraceError(f"there is no device {name}; there are: {known}")


class TwoDevices:
    """`Updates` for algorithms whose state is (actor, critic, updates, seed)."""

    def __init__(self, algorithm: Algorithm, actor_device: Any, critic_device: Any):
        self._algorithm: Any = algorithm
        self._actor_device, self._critic_device = actor_device, critic_device
        self._actor = jax.jit(self._update_actor, donate_argnums=0)
        self._critic = jax.jit(self._update_critic, donate_argnums=0)

    def __call__(self, state: State, experience: Transitions) -> Updated:
        """Batches [K, B, ...]: both programs of an update are under way at the same time."""
        kind, seed = type(state), state.seed
        actor = jax.device_put(state.actor, self._actor_device)
        critic = jax.device_put(state.critic, self._critic_device)
        seen = jax.device_put(experience.obs, self._actor_device)
        batches = jax.device_put(experience, self._critic_device)
        number, metrics = state.updates, []
        for k in range(experience.reward.shape[0]):
            of_actor = self._copied(self._needed_of(actor), self._critic_device)
            of_critic = self._copied(critic.params, self._actor_device)
            batch = jax.tree.map(lambda rows, k=k: rows[k], batches)
            critic, values = self._critic(critic, of_actor, batch, seed, number)
            actor, acts = self._actor(actor, of_critic, seen[k], seed, number)
            metrics.append(values | acts)
            number = number + np.uint32(1)
        state = kind(actor=actor, critic=critic, updates=number, seed=seed)
        means = {name: np.mean([np.asarray(one[name]) for one in metrics]) for name in metrics[0]}
        return Updated(state, self._vector(state), means)

    def _vector(self, state: State) -> Any:
        return flat(self._algorithm.acting(state))

    def _needed_of(self, actor: Any) -> Any:
        """What the critics need to know of the actor: not how its optimiser is doing."""
        if self._algorithm.name == "td3":
            return actor.target
        return actor._replace(adam=None, temperature_adam=None)

    def _update_critic(self, *arguments: Any) -> Any:
        return self._algorithm.update_critic(*arguments)

    def _update_actor(self, actor: Any, critics: Any, obs: Any, seed: Any, number: Any) -> Any:
        if self._algorithm.name == "td3":
            return self._algorithm.update_actor(actor, critics, obs, number)
        return self._algorithm.update_actor(actor, critics, obs, seed, number)

    @staticmethod
    def _copied(tree: Any, device: Any) -> Any:
        """On the other device; a copy also where it is the same, whose owner donates it."""
        return jax.tree.map(
            lambda leaf: jnp.copy(leaf) if leaf.device == device else jax.device_put(leaf, device),
            tree,
        )
