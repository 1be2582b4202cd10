# SPDX-License-Identifier: Apache-2.0
"""Settings that learn an environment well, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import unknown

NONE = "none"


@dataclass(frozen=True)
class Preset:
    """Settings and hyper-parameters by their names; what is not named is as it is by default."""

    name: str
    algo: str
    values: Mapping[str, Any] = field(default_factory=dict)


PRESETS: tuple[Preset, ...] = (
    Preset(
        "CartPole-v1",
        "ppo",
        {
            "num_envs": 64,
            "steps": 32,
            "learning_rate": 3e-3,
            "discount": 0.98,
            "trace": 0.8,
            "epochs": 10,
            "minibatches": 4,
            "evaluation_every": 8192,
        },
    ),
)


def find_preset(env: str, algo: str, name: str | None) -> Preset | None:
    """The one of this name, or else the environment's; None where there is none, or "none"."""
    ours = {preset.name: preset for preset in PRESETS if preset.algo == algo}
    if name is None or name == NONE:
        return None if name == NONE else ours.get(env)
    if name not in ours:
        raise unknown(f"preset for {algo}", name, {*ours, NONE})
    return ours[name]
