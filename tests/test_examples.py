# SPDX-License-Identifier: Apache-2.0
"""Every example runs, as its first lines say; what an example teaches holds."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

import headrace

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {
    "vector_env": ["--num-envs", "64", "--steps", "600"],
    "batches": ["--num-envs", "16", "--batches", "2"],
    "own_environment": [],
}
SAYS = {"vector_env": "mean return ", "batches": "advantages (32, 16)", "own_environment": "xla"}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_it_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *SMALL[name]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


@pytest.mark.usefixtures("own_environments")
def test_the_mountain_car_is_gymnasiums() -> None:
    runpy.run_path(str(EXAMPLES / "own_environment.py"))
    batch = headrace.collect("my/MountainCar-v0", rung="numpy", num_envs=20, steps=400, seed=1)
    assert batch.truncated.any()
    theirs = MountainCarEnv()
    theirs.reset(seed=0)
    after = batch.next_obs()
    for t in range(0, 400, 7):
        for n in range(20):
            theirs.state = tuple(float(value) for value in batch.obs[t, n])
            obs, reward, terminated, _, _ = theirs.step(int(batch.action[t, n]))
            np.testing.assert_allclose(after[t, n], obs, atol=1e-6)
            assert reward == batch.reward[t, n]
            assert terminated == batch.terminated[t, n]
