# SPDX-License-Identifier: Apache-2.0
"""The policy of a run, as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm
from headrace.runtime.evaluator import NEWEST
from headrace.train.model import CARD, MODEL, TrainedPolicy, load_policy
from headrace.train.stage import Act


class Policies(Protocol):
    """Who acts, for as long as `refresh` does not change it."""

    act: Act | None
    """None: nobody yet, actions are random."""
    name: str
    """What it is, for the page."""

    def refresh(self) -> None:
        """See whether there is another."""
        ...


class SavedPolicies(Policies):
    """Those that a run saves into its folder: the last or the best, whichever is newer."""

    def __init__(self, folder: Path):
        self._places = {folder: "best policy", folder / NEWEST: "newest policy"}
        self._seen: tuple[float, Path] | None = None
        self.act = None
        self.name = "no policy yet: random actions"
        self.refresh()

    def refresh(self) -> None:
        """One that cannot be read, because it is just being replaced, is tried again later."""
        found = [(when, place) for place in self._places if (when := _written(place))]
        if not found or max(found) == self._seen:
            return
        newest = max(found)
        try:
            policy = load_policy(newest[1])
        except HeadraceError:
            return
        self._seen = newest
        self.act = policy
        steps = policy.card.get("env_steps")
        after = "" if steps is None else f", after {steps:,} steps"
        self.name = f"{self._places[newest[1]]}{after}"


def _written(place: Path) -> float:
    """When; 0 where there is none."""
    try:
        return max((place / name).stat().st_mtime for name in (MODEL, CARD))
    except FileNotFoundError:
        return 0.0


class Weights(Protocol):
    """Parameters that somebody else changes: what `WeightReader` is."""

    version: int

    @property
    def params(self) -> Acting:
        """A tree of arrays, which `refresh` writes into."""
        ...

    def refresh(self) -> bool:
        """Bring them up to date; whether they have changed."""
        ...


class SharedPolicies(Policies):
    """The very weights that the samplers of a run act with, from shared memory."""

    def __init__(self, algorithm: Algorithm, weights: Weights):
        self._weights = weights
        self._policy = TrainedPolicy(algorithm, weights.params, card={})
        self.act: Any = None
        self.name = "no policy yet: random actions"
        self.refresh()

    def refresh(self) -> None:
        """Read the newest."""
        if self._weights.refresh():
            self.act = self._policy
            self.name = f"current policy, version {self._weights.version:,}"
