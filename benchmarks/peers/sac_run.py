# SPDX-License-Identifier: Apache-2.0
"""Worker: SAC of Stable-Baselines3 or SBX on an environment, for some seconds; prints its rates.

Recommended settings: one environment, one update for each step, 256 x 256. The clock starts with
the second update, so that neither start nor compilation counts against it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time

import gymnasium
from stable_baselines3.common.callbacks import (  # pyright: ignore[reportMissingImports]
    BaseCallback,
)

PACKAGES = {"sb3": "stable_baselines3", "sbx": "sbx"}


class Clock(BaseCallback):
    """Ends the run when the time is up."""

    def __init__(self, seconds: float, first: int):
        super().__init__()
        self.seconds, self.first = seconds, first
        self.begin, self.steps = 0.0, 0

    def _on_step(self) -> bool:
        if self.num_timesteps < self.first:
            return True
        if self.begin == 0.0:
            self.begin, self.steps = time.perf_counter(), self.num_timesteps
        return time.perf_counter() - self.begin < self.seconds


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=tuple(PACKAGES), required=True)
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    package = importlib.import_module(PACKAGES[arguments.framework])
    starts = 100
    model = package.SAC(
        "MlpPolicy",
        gymnasium.make(arguments.env),
        batch_size=arguments.batch_size,
        learning_starts=starts,
        buffer_size=100_000,
        policy_kwargs={"net_arch": [256, 256]},
        seed=0,
    )
    clock = Clock(arguments.seconds, starts + 3)
    model.learn(10**9, callback=clock)
    elapsed = time.perf_counter() - clock.begin
    steps = (clock.num_timesteps - clock.steps) / elapsed
    print(json.dumps({"steps": steps, "frames": steps * arguments.batch_size}))


if __name__ == "__main__":
    main()
