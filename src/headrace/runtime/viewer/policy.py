# SPDX-License-Identifier: Apache-2.0
"""The policy of a run, as it is now: read again whenever the run has written another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.train.stage import Act
from headrace.train.model import CARD, MODEL, load_policy

NEWEST = "newest"
"""Folder in a run's, where a run that goes on keeps the policy that it has now."""


class Policies:
    """`refresh()` looks whether there is another; `act` is the one to act with, None: at random.

    The newest is taken, be it the one the run has just now or the best that it has kept.
    """

    def __init__(self, folder: Path):
        self._places = {folder / NEWEST: "newest policy", folder: "best policy"}
        self._seen: tuple[float, Path] | None = None
        self.act: Act | None = None
        self.name = "no policy yet: random actions"
        self.refresh()

    def refresh(self) -> None:
        """One that cannot be read, because it is just being replaced, is tried again later."""
        found = [(_written(place), place) for place in self._places if _written(place)]
        if not found or (newest := max(found)) == self._seen:
            return
        _, place = newest
        try:
            policy = load_policy(place)
        except HeadraceError:
            return
        self._seen = newest
        self.act = policy
        self.name = f"{self._places[place]}{_after(policy.card)}"


def _written(place: Path) -> float:
    """When; 0 where there is none. The card is written last."""
    try:
        return max((place / name).stat().st_mtime for name in (MODEL, CARD))
    except FileNotFoundError:
        return 0.0


def _after(card: dict[str, Any]) -> str:
    steps = card.get("env_steps")
    return "" if steps is None else f", after {steps:,} steps"
