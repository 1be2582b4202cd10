# SPDX-License-Identifier: Apache-2.0
"""`headrace envs`: what there is to be simulated."""

from __future__ import annotations

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from headrace.envs.registry import entries, spec
from headrace.errors import HeadraceError


def print_environments(*, with_gymnasium: bool) -> None:
    """Ours and those of other packages; Gymnasium's by name alone, for making each takes long."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("environment", "observation", "action", "time limit", "definitions"):
        table.add_column(header, justify="right" if header == "time limit" else "left")
    ours = entries()
    for entry in ours:
        definitions = " ".join(entry.definitions)
        limit = f"{entry.max_episode_steps:,}" if entry.max_episode_steps else "none"
        try:
            made = spec(entry.id)
        except (HeadraceError, ImportError) as error:
            table.add_row(entry.id, f"not available: {error}", "", limit, definitions)
            continue
        observation, action = made.observation_space, made.action_space
        table.add_row(entry.id, describe(observation), describe(action), limit, definitions)
    console = Console()
    console.print(table, highlight=False)
    if with_gymnasium:
        known = {entry.id for entry in ours}
        names = sorted(
            name
            for name, found in gymnasium.registry.items()
            if found.entry_point and name not in known
        )
        console.print("\nGymnasium's, by their gym definition:", style="bold")
        for name in names:
            limit = gymnasium.registry[name].max_episode_steps
            console.print(f"{name}{f'  {limit:,} steps' if limit else ''}", highlight=False)


def describe(space: gymnasium.Space) -> str:
    """A space, in short: "float32[4]", "uint8[210, 160, 3] 0…255", "one of 2"."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return f"one of {space.n}"
    if not isinstance(space, gymnasium.spaces.Box):
        return type(space).__name__
    text = f"{space.dtype}{list(space.shape)}"
    if space.low.size and np.ptp(space.low) == np.ptp(space.high) == 0:
        text += f" {space.low.flat[0]:g}…{space.high.flat[0]:g}"
    return text
