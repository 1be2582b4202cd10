# SPDX-License-Identifier: Apache-2.0
"""What PPO learns from: a rollout's samples with their advantages, and the order they come in.

One text for NumPy and JAX arrays: whoever learns, and however, learns from the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import gymnasium
import numpy as np

from headrace.envs.array.namespace import Array, Namespace
from headrace.learn import chance, normaliser
from headrace.learn.actor import seen
from headrace.learn.algorithm import Rollout
from headrace.learn.returns import advantages, discounted_sums, turn_signs
from headrace.learn.shaping import material_shaping

if TYPE_CHECKING:
    from headrace.learn.ppo import Ppo, PpoState

_SHUFFLE = 32
"""The stream of the learner's random words that orders samples."""
_FINEST = 4096
"""Samples up to which each is shuffled by itself."""


class Samples(NamedTuple):
    """What is learnt from, in the order of a rollout, and then in minibatches."""

    obs: Array
    """As the network sees them."""
    action: Array
    """As the distribution has it: from 0, or before it is taken to the environment's range."""
    log_prob: Array
    """When it was chosen."""
    advantage: Array
    value_target: Array
    mask: Array | None


def samples(
    ns: Namespace, algorithm: Ppo, state: PpoState, rollout: Rollout
) -> tuple[PpoState, Samples]:
    """With advantages [T, N, ...], and what the normalisers have learnt from the rollout."""
    config = algorithm.config
    reward, moments = rollout.reward, state.rewards
    sign = turn_signs(ns, rollout.to_play, rollout.next_to_play)
    if config.material_weight:
        won = material_shaping(
            ns, rollout.obs, rollout.next_obs, rollout.terminated, sign, config.discount
        )
        reward = reward + config.material_weight * won
    if config.scale_rewards:
        ended = rollout.terminated | rollout.truncated
        sums = discounted_sums(ns, reward, ended, config.discount)
        moments = normaliser.add(ns, moments, sums)
        reward = normaliser.scaled(ns, moments, reward)
    value = rollout.extras["value"]
    advantage = advantages(
        ns,
        reward,
        rollout.terminated,
        rollout.truncated,
        value,
        next_values(ns, algorithm, state, rollout),
        sign,
        config.discount,
        config.trace,
    )
    found = Samples(
        obs=seen(ns, state.observations, rollout.obs),
        action=_as_drawn(algorithm, rollout),
        log_prob=rollout.extras["log_prob"],
        advantage=advantage,
        value_target=advantage + value,
        mask=rollout.mask,
    )
    # What the policy saw is what is learnt from; the next rollout sees the new moments.
    if config.normalise_observations:
        state = state._replace(observations=normaliser.add(ns, state.observations, rollout.obs))
    return state._replace(rewards=moments), found


def next_values(ns: Namespace, algorithm: Ppo, state: PpoState, rollout: Rollout) -> Array:
    """V(next) [T, N]: the values of the next row, but where an episode was cut off."""

    def values(obs: Array) -> Array:
        return algorithm.network.values(ns, state.params, seen(ns, state.observations, obs))

    def all_values(obs: Array) -> Array:
        if len(obs.shape) > 3:  # of images and boards networks keep a hundred times as much
            return ns.by_rows(values, obs)
        return values(obs.reshape((-1, *obs.shape[2:]))).reshape(obs.shape[:2])

    value, cut = rollout.extras["value"], rollout.truncated[:-1]
    last = values(rollout.next_obs[-1])[None]
    # Those whose value counts though no row holds it are rare: compute all, or none.
    earlier = ns.when_any(
        cut, lambda: ns.xp.where(cut, all_values(rollout.next_obs[:-1]), value[1:]), value[1:]
    )
    return ns.xp.concat([earlier, last])


def order(ns: Namespace, algorithm: Ppo, state: PpoState, size: int) -> tuple[Array, int]:
    """Which blocks are in each minibatch [epochs * minibatches, ...], and how many there are.

    Blocks are consecutive samples; in each epoch they are dealt out anew.
    """
    config, blocks = algorithm.config, size
    algorithm.check_size(size)
    while blocks > _FINEST and blocks % 2 == 0 and (blocks // 2) % config.minibatches == 0:
        blocks //= 2
    words = chance.words(ns, state.seed, state.rollouts, _SHUFFLE, config.epochs * blocks)
    dealt = ns.xp.argsort(words.reshape((config.epochs, blocks)), axis=1, stable=True)
    return dealt.reshape((config.epochs * config.minibatches, -1)), blocks


def _as_drawn(algorithm: Ppo, rollout: Rollout) -> Array:
    space = algorithm.spec.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return rollout.action.astype(np.int32) - int(space.start)
    return rollout.extras["drawn"]
