# SPDX-License-Identifier: Apache-2.0
"""What the processes of a run agree on, and the channels that they open by it.

The supervisor makes the plan and sends it to each process with the descriptor of their memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headrace.envs.array.namespace import namespace
from headrace.envs.philox import identify
from headrace.envs.spec import EnvSpec
from headrace.learn.algorithm import Acting, Algorithm
from headrace.policy import PolicyKey
from headrace.runtime.counters import Counters
from headrace.runtime.fields import Fields, rollout_fields, transition_fields
from headrace.runtime.replay_ring import ReplayRing
from headrace.runtime.rollout_slots import RolloutSlots
from headrace.runtime.shared import SharedMemory
from headrace.runtime.weights import SharedWeights
from headrace.train.config import RunConfig, Settings
from headrace.train.session import make_algorithm_of

_SLOTS_EACH = 2
"""Rollouts of a sampler: one is learnt from while it fills the other."""


@dataclass(frozen=True)
class Plan:
    """Everything resolved; picklable."""

    config: RunConfig
    spec: EnvSpec
    played: EnvSpec
    """What evaluations are played in."""
    folder: Path
    samplers: int
    envs: int
    """Of each sampler."""
    steps: int
    """Of every environment between two looks at the weights: those of a rollout, on-policy."""
    batch_size: int
    """Transitions of an update; on-policy, of a rollout of all samplers."""
    updates: int
    """In one dispatch."""
    on_policy: bool
    fields: Fields
    acting: Acting
    """Parameters to act with: their shapes."""

    @property
    def settings(self) -> Settings:
        """Of the run."""
        return self.config.settings

    @property
    def iteration(self) -> int:
        """Environment steps of all samplers between two looks at the weights."""
        return self.samplers * self.envs * self.steps

    @property
    def capacity(self) -> int:
        """Transitions in the ring: whole iterations, as in the other arrangements."""
        return -(-self.settings.replay_size // self.iteration) * self.iteration

    @property
    def ratio(self) -> float | None:
        """Updates for each environment step; None where nobody waits for anybody."""
        if self.settings.lock_step and not self.on_policy:
            return self.updates / self.iteration
        return self.settings.replay_ratio

    def algorithm(self) -> Algorithm:
        """Made anew: each process has its own."""
        return make_algorithm_of(self.config, self.spec)


@dataclass(frozen=True)
class Channels:
    """Everything that the processes share."""

    counters: Counters
    weights: SharedWeights
    ring: ReplayRing | None
    slots: RolloutSlots | None


def open_channels(memory: SharedMemory, plan: Plan) -> Channels:
    """The same parts in the same order, in every process."""
    counters = Counters(memory, plan.samplers)
    weights = SharedWeights(memory, plan.acting)
    if not plan.on_policy:
        return Channels(counters, weights, ReplayRing(memory, plan.fields, plan.capacity), None)
    slots = RolloutSlots(
        memory,
        plan.fields,
        samplers=plan.samplers,
        slots=1 if plan.settings.lock_step else _SLOTS_EACH,
        steps=plan.steps,
        envs=plan.envs,
    )
    return Channels(counters, weights, None, slots)


def fields_of(algorithm: Algorithm, acting: Acting) -> Fields:
    """What its experience is made of."""
    spec = algorithm.spec
    if not algorithm.on_policy:
        return transition_fields(spec)
    return rollout_fields(spec, _example_extras(algorithm, acting))


def _example_extras(algorithm: Algorithm, acting: Acting) -> dict[str, np.ndarray]:
    """What its policy notes, by trying it on nothing."""
    spec, ns = algorithm.spec, namespace("numpy")
    space = spec.observation_space
    dtype = np.float32 if space.dtype == np.float64 else space.dtype
    obs = np.zeros((1, *(space.shape or ())), dtype)
    mask = np.full((1, spec.mask_bytes), 255, np.uint8) if spec.masked else None
    key = PolicyKey(identify(ns, 1, 0), np.uint32(0))
    _, extras = algorithm.policy("numpy").apply(acting, obs, mask, key)
    return {name: np.asarray(value) for name, value in extras.items()}
