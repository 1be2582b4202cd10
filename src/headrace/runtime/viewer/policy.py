# SPDX-License-Identifier: Apache-2.0
"""The policy of a run, as it is now."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.learn.algorithm import Acting, Algorithm
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
    """Those that a run saves into its folder: the best so far, read again when there is another."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._seen = 0.0
        self.act = None
        self.name = "no policy yet: random actions"
        self.refresh()

    def refresh(self) -> None:
        """One that cannot be read, because it is just being replaced, is tried again later."""
        written = self._written()
        if written == self._seen:
            return
        try:
            policy = load_policy(self._folder)
        except HeadraceError:
            return
        self._seen = written
        self.act = policy
        steps = policy.card.get("env_steps")
        self.name = "best policy" if steps is None else f"best policy, after {steps:,} steps"

    def _written(self) -> float:
        try:
            return max((self._folder / name).stat().st_mtime for name in (MODEL, CARD))
        except FileNotFoundError:
            return self._seen


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
