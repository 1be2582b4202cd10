# SPDX-License-Identifier: Apache-2.0
"""Videos that an asynchronous run makes of its agent."""

import time

import numpy as np
import pytest
from PIL import Image

from headrace.runtime.camera import Camera
from headrace.runtime.run import make_plan
from headrace.train import trees
from headrace.train.config import environment
from headrace.train.resolve import resolve
from headrace.train.session import make_algorithm_of


@pytest.fixture
def filmed(tmp_path):
    """A camera that is always due, what it films with, where to, and what it says."""

    def make(env="CartPole-v1", steps=40, **given):
        config = resolve(
            env, algo="ppo", mode="async", definition="gym", preset="none",
            options={"max_episode_steps": steps}, given={"video_every": 1e-3} | given,
        )  # fmt: skip
        algorithm = make_algorithm_of(config, environment(config))
        acting = algorithm.acting(algorithm.init(0))
        plan = make_plan(config, tmp_path, algorithm, acting)
        said = []
        camera = Camera(plan, algorithm, said.append)
        time.sleep(2e-3)
        return camera, acting, tmp_path / "videos", said

    return make


def all_turns(camera):
    """Take every picture; returns how many turns that were."""
    turns = 0
    while camera._filming is not None:
        if camera.ready:
            camera.turn()
            turns += 1
        time.sleep(1e-4)
    return turns


def test_an_episode_is_filmed_a_picture_at_a_time(filmed):
    camera, acting, videos, said = filmed()
    assert not camera.ready
    camera.aim(acting, 1000)
    assert camera.ready
    began = time.perf_counter()
    busy = time.process_time()
    turns = all_turns(camera)
    busy = time.process_time() - busy
    assert time.perf_counter() - began > 3 * busy  # the rests that samplers have from it
    (path,) = videos.iterdir()
    assert path.name == f"step-{1000:014}.gif"
    with Image.open(path) as video:
        assert video.n_frames == turns  # the first was made by `aim`, the last turn made none
    camera.aim(acting, 2000)
    camera.aim(acting, 3000)  # while it is busy with another
    all_turns(camera)
    assert sorted(one.name for one in videos.iterdir())[1:] == [f"step-{2000:014}.gif"]
    assert not said


def test_parameters_may_change_while_they_are_filmed(filmed):
    camera, acting, _, _ = filmed()
    camera.aim(acting, 0)
    ours = camera._filming._policy.params
    for name, array in trees.named(ours).items():
        np.testing.assert_array_equal(array, trees.named(acting)[name])
        assert not np.shares_memory(array, trees.named(acting)[name])
    camera.close()


@pytest.mark.parametrize(("pictures", "kept"), [(20, 0), (60, 1)])
def test_the_end_of_the_run_keeps_some_seconds(filmed, pictures, kept):
    camera, acting, videos, _ = filmed("Pendulum-v1", steps=200)
    camera.aim(acting, 1)
    for _ in range(pictures):
        camera.turn()
    camera.close()
    assert len(list(videos.glob("*"))) == kept
    assert not camera.ready


def test_what_cannot_be_drawn_is_said_once(filmed):
    camera, acting, videos, said = filmed("fault_envs:Quiet")
    for env_steps in range(3):
        camera.aim(acting, env_steps)
    assert not camera.ready
    (text,) = said
    assert text.startswith("no videos: ")
    assert "cannot be drawn" in text
    assert not videos.exists()


def test_none_are_made_where_none_are_wanted(filmed):
    camera, acting, _, said = filmed(video_every=None)
    camera.aim(acting, 1)
    assert not camera.ready
    assert not said
