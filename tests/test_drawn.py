# SPDX-License-Identifier: Apache-2.0
"""Environments drawn, the agent in them, and videos of it."""

import sys

import gymnasium
import numpy as np
import pytest
from PIL import Image, ImageSequence
from recorded_run import save_policy

import headrace
from headrace.envs import registry
from headrace.envs.spec import EnvEntry
from headrace.errors import HeadraceError
from headrace.runtime.viewer.policy import SavedPolicies, SharedPolicies
from headrace.train.algorithms import make_algorithm
from headrace.train.stage import Stage
from headrace.train.video import KEPT, film, keep_video, write_gif


def test_an_episode_is_gymnasiums_own():
    spec = headrace.spec("CartPole-v1", max_episode_steps=12)
    stage = Stage(spec, seed=3)
    theirs = gymnasium.make("CartPole-v1", render_mode="rgb_array", max_episode_steps=12)
    theirs.reset(seed=3)
    try:
        np.testing.assert_array_equal(stage.draw(), theirs.render())
        ends, steps = [], 0
        while not stage.ended:
            action = steps % 2
            stage.step(lambda obs, mask, action=action: np.uint8(action))
            *_, terminated, truncated, _ = theirs.step(action)
            ends.append((terminated, truncated))
            np.testing.assert_array_equal(stage.draw(), theirs.render())
            steps += 1
        assert (stage.steps, stage.score) == (12, 12.0)
        assert stage.ended == "truncated"
        assert ends == [(False, False)] * 11 + [(False, True)]
        stage.reset()
        assert (stage.episode, stage.steps, stage.ended) == (2, 0, "")
    finally:
        stage.close()
        theirs.close()


class NoPicture(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def render(self):
        return "a line of text"


class TakesNoMode(NoPicture):
    def __init__(self):
        super().__init__()


@pytest.mark.parametrize(
    ("kind", "said"),
    [(NoPicture, "its render() gives no image"), (TakesNoMode, "render_mode")],
)
def test_what_cannot_be_drawn_is_said_in_one_line(own_environments, kind, said):
    registry.register("Blind-v0", gym=kind)
    with pytest.raises(HeadraceError, match="Blind-v0 cannot be drawn: ") as error:
        Stage(headrace.spec("Blind-v0"))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_definition_that_draws_is_needed():
    with pytest.raises(HeadraceError, match="it has no Gymnasium definition"):
        Stage(headrace.spec("Memory-v0"))


def test_chess_is_drawn_as_it_stands():
    chess = pytest.importorskip("chess")
    from headrace.envs.chess.picture import CHECKED, DARK, LIGHT, MARGIN, MOVED_LIGHT, SQUARE, draw

    def corner(image, square):
        file, rank = "abcdefgh".index(square[0]), int(square[1])
        return tuple(image[MARGIN + SQUARE * (8 - rank) + 2, MARGIN + SQUARE * file + 2])

    board = chess.Board()
    image = draw(board)
    assert (corner(image, "a1"), corner(image, "h1")) == (DARK, LIGHT)
    for san in ("e4", "e5", "Qh5", "Nc6", "Bc4", "Nf6", "Qxf7#"):
        board.push_san(san)
    mate = draw(board)
    assert corner(mate, "e8") == CHECKED
    assert corner(mate, "f7") == corner(mate, "h5") == MOVED_LIGHT
    middle = MARGIN + SQUARE // 2
    assert mate[middle, middle].max() < 80, "a black rook on a8"
    assert mate[middle + 7 * SQUARE, middle].min() > 200, "a white one on a1"


def test_a_random_game_of_chess_is_played_to_its_end():
    pytest.importorskip("chess")
    stage = Stage(headrace.spec("Chess-v0", max_episode_steps=5), seed=0)
    while not stage.ended:
        stage.step(None)
    assert stage.steps == 5
    assert stage.draw().shape == (492, 492, 3)
    stage.close()


def test_a_video_shows_the_episode(tmp_path):
    spec = headrace.spec("CartPole-v1", max_episode_steps=40)
    shown = film(lambda obs, mask: int(obs[2] > 0), spec, seed=1)
    assert (shown.total, shown.fps) == (40, 25)
    path = tmp_path / "video.gif"
    write_gif(path, shown)
    with Image.open(path) as video:
        frames = [np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(video)]
        assert video.size == (360, 240)
        assert video.info["duration"] == 40  # ms: every second of 50 a second
    assert 15 <= len(frames) <= 21  # those that are alike are one
    assert np.abs(np.int16(frames[0]) - frames[-1]).max() > 50


def test_the_last_videos_are_kept(tmp_path):
    shown = film(None, headrace.spec("CartPole-v1", max_episode_steps=1))
    for env_steps in range(KEPT + 3):
        keep_video(tmp_path, shown, env_steps)
    names = sorted(one.name for one in (tmp_path / "videos").iterdir())
    assert names == [f"step-{steps:014}.gif" for steps in range(3, KEPT + 3)]


def test_the_policy_that_plays_is_the_one_that_was_saved_last(tmp_path):
    policies = SavedPolicies(tmp_path)
    assert policies.act is None
    assert "random" in policies.name
    save_policy(tmp_path, seed=0, env_steps=2048)
    policies.refresh()
    first = policies.act
    assert first is not None
    assert policies.name == "best policy, after 2,048 steps"
    policies.refresh()
    assert policies.act is first
    save_policy(tmp_path, seed=1, env_steps=4096)
    policies.refresh()
    assert policies.name == "best policy, after 4,096 steps"
    (tmp_path / "model.safetensors").write_bytes(b"half of i")
    policies.refresh()
    assert policies.name == "best policy, after 4,096 steps", "a damaged one is passed over"
    assert policies.act is not None
    assert policies.act(np.zeros(4, np.float32), None) in (0, 1)


def test_shared_weights_play_as_they_are_now():
    spec = headrace.spec("CartPole-v1")
    algorithm = make_algorithm("ppo", spec, {}, "test")

    class Weights:
        version = 0
        params = algorithm.acting(algorithm.init(0))

        def refresh(self):
            self.version += 1
            return self.version < 3

    policies = SharedPolicies(algorithm, Weights())
    assert policies.name == "current policy, version 1"
    policies.refresh()
    assert policies.name == "current policy, version 2"
    assert policies.act(np.zeros(4, np.float32), None) in (0, 1)


def test_an_entry_without_its_package_is_said():
    entry = EnvEntry("Gone-v0", gym="no_such_package.at_all:Env")
    spec = headrace.spec("CartPole-v1")
    with pytest.raises(HeadraceError, match="Gone-v0 cannot be drawn: No module named"):
        Stage(type(spec)(entry, spec.observation_space, spec.action_space, None))
    assert "no_such_package" not in sys.modules
