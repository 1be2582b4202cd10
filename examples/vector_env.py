# SPDX-License-Identifier: Apache-2.0
"""A loop over Gymnasium's vector API, with one of its wrappers: only the first line is ours.

python examples/vector_env.py [--num-envs N] [--steps T]
"""

import argparse
import time

import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import headrace


def main() -> None:
    """Balance poles by hand-made feedback."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=1000)
    settings = parser.parse_args()

    envs = RecordEpisodeStatistics(headrace.make_vec("CartPole-v1", num_envs=settings.num_envs))
    obs, _ = envs.reset(seed=0)
    returns: list[float] = []
    start = time.perf_counter()
    for _ in range(settings.steps):
        x, x_dot, angle, angle_dot = obs.T
        action = (angle + 0.3 * angle_dot + 0.05 * x + 0.1 * x_dot > 0).astype(np.int64)
        obs, _, _, _, infos = envs.step(action)
        if "episode" in infos:
            returns += infos["episode"]["r"][infos["_episode"]].tolist()
    seconds = time.perf_counter() - start
    envs.close()
    print(f"{settings.num_envs * settings.steps / seconds:,.0f} steps/s, wrapper included")
    print(f"{len(returns)} episodes, mean return {np.mean(returns):.1f}")


if __name__ == "__main__":
    main()
