# SPDX-License-Identifier: Apache-2.0
"""The evaluator's process: how good the newest weights are, in environments of its own.

It plays without exploring, keeps the best policy as the run's model, and tells the supervisor;
every so often it films the agent. It takes weights that nobody else has to wait for, and rests
between evaluations for as long as it takes to be busy no more than its share of a processor, but
for a moment at the beginning: a short run is to see its end. It needs no JAX.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headrace.learn.algorithm import Acting, Algorithm
from headrace.policy import Policy
from headrace.runtime import counters
from headrace.runtime.camera import Camera
from headrace.runtime.child import EVALUATED, SAY, Wire
from headrace.runtime.plan import Channels, Plan, open_channels
from headrace.runtime.sampler import beating
from headrace.runtime.shared import SharedMemory
from headrace.train.evaluate import evaluate, proven
from headrace.train.model import save_model
from headrace.train.session import EVALUATION_SEED

NEWEST = "newest"
"""Where in the run folder the policy is that was evaluated last; the folder itself has the best."""
_PROOF = 5
"""Times as many episodes, at most, are played by a policy that reached what it was to reach."""
_CREDIT_S = 1.0
"""Of work beyond its share."""
_NAP_S = 0.005
_NEWEST_EVERY_S = 1.0


@dataclass(frozen=True)
class Evaluator:
    """The work; `steps_before` is what the run had done before, `best` its best return."""

    plan: Plan
    steps_before: int = 0
    best: float | None = None

    def __call__(self, memory: SharedMemory, line: Wire) -> None:
        """Until told to stop."""
        channels = open_channels(memory, self.plan)
        camera = Camera(self.plan, self.plan.algorithm(), lambda text: line.tell(SAY, text))
        with contextlib.suppress(_Stopped):
            self._evaluate(channels, line, camera)
        camera.close()

    def _evaluate(self, channels: Channels, line: Wire, camera: Camera) -> None:
        """Again and again."""
        ours, weights = channels.counters.evaluator, channels.weights.reader()
        algorithm = self.plan.algorithm()
        settings = self.plan.settings
        played = _Beating(algorithm, ours, channels.counters.orders)
        best, next_at, newest_at = self.best, 0, 0.0
        busy, began = 0.0, time.monotonic()
        while not channels.counters.orders.get(counters.STOP):
            ours.beat()
            steps, now = channels.counters.sampled(), time.monotonic()
            allowed = _CREDIT_S + settings.evaluation_share * (now - began)
            early = steps < next_at or busy > allowed
            if channels.counters.orders.get(counters.LAST):
                early = False
            known = channels.weights.version == weights.version
            if known or early or not self._learnt(channels):
                if camera.ready:
                    camera.turn()
                    busy += time.monotonic() - now
                time.sleep(_NAP_S)
                continue
            weights.refresh()
            play = partial(self._returns, played, weights.params, settings.evaluation_episodes)
            returns = play(0)
            if settings.until is not None:
                most = _PROOF * settings.evaluation_episodes
                returns = proven(returns, settings.until, most, play)
            mean = float(np.mean(returns))
            found = {
                "env_steps": self.steps_before + steps,
                "mean": mean,
                "spread": float(np.std(returns)),
                "episodes": len(returns),
                "version": weights.version,
            }
            if time.monotonic() - newest_at >= _NEWEST_EVERY_S:
                newest_at = time.monotonic()
                self._save(self.plan.folder / NEWEST, algorithm, weights.params, found)
            if best is None or mean >= best:
                best = mean
                self._save(self.plan.folder, algorithm, weights.params, found)
            ours.add(counters.STEPS, played.take_frames())
            ours.set(counters.VERSION, weights.version)
            line.tell(EVALUATED, found)
            camera.aim(weights.params, found["env_steps"])
            next_at = steps + settings.evaluation_every
            busy += time.monotonic() - now

    def _returns(self, played: _Beating, acting: Acting, episodes: int, again: int) -> np.ndarray:
        seed = EVALUATION_SEED * (1 + again) + self.plan.settings.seed
        return evaluate(
            played,  # pyright: ignore[reportArgumentType] - all of it that is used
            acting,
            self.plan.played,
            episodes,
            seed,
        )

    def _save(
        self, folder: Path, algorithm: Algorithm, acting: Acting, found: dict[str, Any]
    ) -> None:
        folder.mkdir(exist_ok=True)
        save_model(
            folder,
            algorithm,
            acting,
            dataclasses.asdict(self.plan.config.algorithm),
            env_steps=found["env_steps"],
            evaluation={name: found[name] for name in ("mean", "spread", "episodes")},
        )

    @staticmethod
    def _learnt(channels: Any) -> bool:
        """Whether there is anything that the first weights did not have."""
        return channels.counters.learner.get(counters.UPDATES) > 0


class _Stopped(Exception):  # noqa: N818 - it is none
    """The run is at its end: nobody waits for this evaluation."""


class _Beating:
    """As much of an algorithm as evaluating needs; its policy gives signs of life, and counts.

    It ends what it is used for when the run is to stop.
    """

    def __init__(self, algorithm: Algorithm, ours: counters.Line, orders: counters.Line):
        self._algorithm, self._ours, self._orders = algorithm, ours, orders
        self.spec = algorithm.spec
        self.frames = 0

    def policy(self, library: Literal["numpy", "jax"], *, deterministic: bool = False) -> Policy:
        """Of NumPy's, counted."""
        policy = beating(self._algorithm.policy(library, deterministic=deterministic), self._ours)
        apply = policy.apply

        def counted(params: Any, obs: Any, mask: Any, key: Any) -> Any:
            self.frames += len(obs)
            if self._orders.get(counters.STOP):
                raise _Stopped
            return apply(params, obs, mask, key)

        return dataclasses.replace(policy, apply=counted)

    def take_frames(self) -> int:
        """Steps since it was asked last."""
        taken, self.frames = self.frames, 0
        return taken
