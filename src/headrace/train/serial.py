# SPDX-License-Identifier: Apache-2.0
"""Training in one process, in lock-step: a collector on the host, then the update, and again.

It takes any Gymnasium environment, and any of the host's rungs; the updates are those of the other
arrangements. So it is also what they are compared with, and the place for a debugger.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np

from headrace.collect.base import Collector, Request
from headrace.collect.rungs import rung_class
from headrace.envs.spec import EnvSpec
from headrace.learn.algorithm import Acting, Algorithm, Metrics, State
from headrace.learn.replay import Ring
from headrace.train import trees
from headrace.train.learners import HostLearner, Learner, mean_metrics
from headrace.train.trainer import Progress

RUNGS = {"gym": "python", "array": "numpy", "native": "openmp"}
"""What makes experience on the host, by the definition it is made from."""


class SerialState(NamedTuple):
    """All that a run is."""

    learner: State
    ring: Ring | None
    """What off-policy algorithms learn from."""
    envs: dict[str, np.ndarray]
    """Where native environments are; the others, which cannot say, start anew on a resume."""
    env_steps: np.ndarray
    updates: np.ndarray
    update_frames: np.ndarray


class SerialTrainer:
    """Collects on the host with the NumPy policy, and learns by XLA, or on the host as well.

    The same arguments and as many iterations give the same state. Continued by `load_state`,
    native environments go on where they were; others begin new episodes, with seeds that nothing
    had before.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        spec: EnvSpec,
        *,
        num_envs: int = 1,
        steps: int = 1,
        seed: int = 0,
        definition: str = "gym",
        rung: str | None = None,
        threads: int | None = None,
        workers: int | None = None,
        learner: Literal["xla", "host"] = "xla",
        updates: int | None = None,
        replay_size: int = 100_000,
        learning_starts: int = 1000,
    ):
        """`rung` None takes the definition's; any that takes a policy will do, with as many
        `threads` or `workers` as it would have by itself, or these. With the `learner` "host" JAX
        is not needed.

        The last three are for off-policy algorithms, as in `CompiledOffPolicyTrainer`.
        """
        algorithm.check_size(num_envs * steps)
        self.algorithm = algorithm
        self.num_envs, self.steps = num_envs, steps
        self._rung = rung_class(rung or RUNGS[definition])
        policy = algorithm.policy(library_of(self._rung) or "numpy")
        self._request = Request(
            spec, num_envs, steps, policy, seed, threads=threads, workers=workers
        )
        self._collector: Collector = self._rung(self._request)
        self._learn: Learner
        if learner == "host":
            self._learn = HostLearner(algorithm)
        else:
            from headrace.train.xla_learners import OffPolicyLearner, OnPolicyLearner

            count = num_envs * steps if updates is None else updates
            self._learn = (
                OnPolicyLearner(algorithm)
                if algorithm.on_policy
                else OffPolicyLearner(algorithm, count, replay_size, learning_starts)
            )
        self._learner, self._ring = algorithm.init(seed), self._learn.ring(self._request)
        self._env_steps = self._updates = self._frames = 0
        self._generation = self._update = 0.0

    @property
    def state(self) -> SerialState:
        """All there is, copied where the next iteration writes it."""
        saves = type(self._collector).save is not Collector.save
        return SerialState(
            self._learner,
            self._ring,
            self._collector.save() if saves else {},
            np.array(self._env_steps),
            np.array(self._updates),
            np.array(self._frames),
        )

    def load_state(self, tree: SerialState) -> None:
        """Continue."""
        self._learner, self._ring = tree.learner, tree.ring
        self._env_steps, self._updates = int(tree.env_steps), int(tree.updates)
        self._frames = int(tree.update_frames)
        if tree.envs:
            self._collector.restore(tree.envs)
            return
        self._collector.close()
        children = np.random.SeedSequence([self._request.seed, self._env_steps])
        seed = int(children.generate_state(1, np.uint64)[0])
        self._collector = self._rung(replace(self._request, seed=seed))

    def advance(self, iterations: int) -> Progress:
        """Collect and learn, so many times."""
        ends: list[tuple[np.ndarray, np.ndarray]] = []
        metrics: list[Metrics] = []
        for _ in range(iterations):
            begin = perf_counter()
            batch = self._collector.collect(self.acting())
            returns, lengths = batch.episodes()
            ends.append((returns.copy(), lengths.copy()))
            middle = perf_counter()
            learnt = self._learn(self._learner, self._ring, batch)
            self._learner, self._ring = learnt.learner, learnt.ring
            self._generation += middle - begin
            self._update += perf_counter() - middle
            self._env_steps += self.num_envs * self.steps
            self._updates += learnt.updates
            self._frames += learnt.frames
            if learnt.updates:
                metrics.append(learnt.metrics)
        returns, lengths = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        return Progress(
            self._env_steps,
            self._updates,
            mean_metrics(metrics),
            returns,
            lengths,
            self._frames,
            self._generation,
            self._update,
        )

    def acting(self) -> Acting:
        """What the policy needs now."""
        return trees.mapped(np.asarray, self.algorithm.acting(self._learner))

    def close(self) -> None:
        """Close the environments."""
        self._collector.close()


def library_of(rung: type[Collector]) -> Literal["numpy", "jax"] | None:
    """Of the arrays that a policy has on this rung; None where it takes none."""
    if "numpy" in rung.policies:
        return "numpy"
    return "jax" if "jax" in rung.policies else None
