# SPDX-License-Identifier: Apache-2.0
"""Settings that were measured to work, by environment and algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import HeadraceError, unknown


@dataclass(frozen=True)
class Preset:
    """Settings of a run and of its algorithm, by their names, instead of the defaults.

    `options` are the environment's, and `learner` is whose update.
    """

    name: str
    values: Mapping[str, Any]


DEFAULT = "default"

_ONE_SAMPLER: Mapping[str, Any] = {
    "samplers": 1,
    "envs_per_sampler": 8,
    "updates_per_dispatch": 32,
    "replay_ratio": 1.0,
    "evaluation_share": 1.0,
    "learner_threads": 1,
}
"""Asynchronous, of small networks that are learnt fast: nothing is left for the tuner to find."""

_CHESS: Mapping[str, Any] = {
    "options": {"observation": "compact", "start": "mixed"},
    "num_envs": 64,
    "steps": 32,
    "channels": 32,
    "blocks": 2,
    "learning_rate": 5e-4,
    "discount": 0.99,
    "trace": 0.9,
    "epochs": 3,
    "minibatches": 16,
    "entropy_weight": 0.003,
    "material_weight": 0.5,
    "total_steps": 1_500_000,
    "anneal_steps": 1_500_000,
    "evaluation_every": 65_536,
    "evaluation_episodes": 128,
}

PRESETS: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {
    ("CartPole-v1", "ppo"): {
        # Solved in about 23,000 steps, before XLA would have compiled anything.
        DEFAULT: {
            "learner": "host",
            "num_envs": 32,
            "steps": 32,
            "learning_rate": 1e-3,
            "discount": 0.98,
            "trace": 0.8,
            "epochs": 10,
            "minibatches": 4,
            "until": 475.0,
            "evaluation_every": 4096,
        },
        # The most environment steps a second, of settings that solve it: each is learnt from once.
        "throughput": {
            "num_envs": 512,
            "steps": 32,
            "learning_rate": 3e-3,
            "discount": 0.98,
            "trace": 0.9,
            "epochs": 1,
            "minibatches": 16,
            "total_steps": 10_000_000,
            "evaluation_every": 131_072,
        },
    },
    # Small networks and small minibatches; half of the games begin where they can be won.
    ("Chess-v0", "ppo"): {DEFAULT: _CHESS},
    ("ChessVsRandom-v0", "ppo"): {DEFAULT: _CHESS},
    ("Pendulum-v1", "ppo"): {
        DEFAULT: {
            "learner": "host",
            "num_envs": 64,
            "steps": 64,
            "learning_rate": 1e-3,
            "discount": 0.9,
            "trace": 0.95,
            "epochs": 10,
            "minibatches": 16,
            "scale_rewards": True,
            "total_steps": 200_000,
            "evaluation_every": 8192,
        },
    },
    ("Pendulum-v1", "sac"): {
        # Solved in 1,500 to 2,500 steps, one update each: targets that follow fast.
        DEFAULT: {
            "num_envs": 16,
            "steps": 8,
            "hidden": (64, 64),
            "actor_learning_rate": 3e-3,
            "critic_learning_rate": 3e-3,
            "temperature_learning_rate": 3e-3,
            "target_rate": 0.03,
            "batch_size": 128,
            "learning_starts": 512,
            "until": -200.0,
            "total_steps": 50_000,
            "evaluation_every": 512,
            **_ONE_SAMPLER,
        },
    },
    ("InvertedDoublePendulum-v5", "sac"): {
        # Solved in 3,500 to 5,500 steps, one update each.
        DEFAULT: {
            "num_envs": 8,
            "steps": 8,
            "hidden": (64, 64),
            "actor_learning_rate": 3e-3,
            "critic_learning_rate": 3e-3,
            "temperature_learning_rate": 3e-3,
            "target_rate": 0.02,
            "batch_size": 128,
            "until": 9000.0,
            "total_steps": 100_000,
            "evaluation_every": 512,
            **_ONE_SAMPLER,
        },
    },
    ("Pendulum-v1", "td3"): {
        DEFAULT: {
            "num_envs": 16,
            "steps": 8,
            "hidden": (64, 64),
            "actor_learning_rate": 3e-3,
            "critic_learning_rate": 3e-3,
            "exploration_noise": 0.2,
            "until": -200.0,
            "total_steps": 50_000,
            "evaluation_every": 1024,
        },
    },
    ("CartPole-v1", "dqn"): {
        # With more updates a step the values run away from what rewards can be.
        DEFAULT: {
            "num_envs": 16,
            "steps": 8,
            "updates": 16,
            "hidden": (128, 128),
            "learning_rate": 1e-3,
            "epsilon_updates": 1500,
            "until": 475.0,
            "total_steps": 300_000,
            "evaluation_every": 5120,
        },
    },
}


def find_preset(env: str, algo: str, name: str | None = None) -> Preset | None:
    """The preset of this name, or the environment's default one, if it has any."""
    found = PRESETS.get((env, algo), {})
    if name is None:
        return Preset(DEFAULT, found[DEFAULT]) if DEFAULT in found else None
    if name not in found:
        if not found:
            raise HeadraceError(f"there is no preset of {algo} for {env}, so none named '{name}'")
        raise unknown("preset", name, found)
    return Preset(name, found[name])
