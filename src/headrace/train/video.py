# SPDX-License-Identifier: Apache-2.0
"""A video of a policy: the Gymnasium environment of the same rules, played and drawn by itself."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from PIL import Image

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.train.files import write_whole
from headrace.train.stage import Act, Stage

VIDEOS = "videos"
"""Folder in a run's: what it filmed as it went."""
KEPT = 10
"""How many of them, at most."""
_SIDE = 360
"""Pixels of the longer side, at most."""
_FPS = 25
"""At most; of a faster environment some frames are left out."""
_MOST_STEPS = 2000


class Film(NamedTuple):
    """An episode."""

    frames: list[Image.Image]
    """Small ones, of few colours: what they take in memory is what the file will have."""
    fps: float
    total: float
    """Its return."""


class Filming:
    """An episode under way, played and drawn one picture at a time: about 25 a second of it.

    A policy of None acts at random. An error says in one line why there is nothing to be seen.
    """

    def __init__(self, policy: Act | None, spec: EnvSpec, seed: int = 0):
        self._policy, self._stage = policy, Stage(spec, seed)
        try:
            self._every = max(1, round(self._stage.fps / _FPS))
            self.frames = [_picture(self._stage)]
        except BaseException:
            self.close()
            raise

    def more(self) -> bool:
        """Add the next picture; False where the episode, or what is filmed of it, has ended."""
        stage = self._stage
        if stage.ended or stage.steps >= _MOST_STEPS:
            return False
        stage.step(self._policy)
        while stage.steps % self._every and not stage.ended:
            stage.step(self._policy)
        self.frames.append(_picture(stage))
        return True

    @property
    def shown(self) -> Film:
        """What there is of it."""
        return Film(self.frames, self._stage.fps / self._every, self._stage.score)

    def close(self) -> None:
        """Release the environment."""
        self._stage.close()


def film(policy: Act | None, spec: EnvSpec, seed: int = 0) -> Film:
    """Play and draw an episode to its end."""
    filming = Filming(policy, spec, seed)
    try:
        while filming.more():
            pass
        return filming.shown
    finally:
        filming.close()


def write_gif(path: Path, shown: Film) -> None:
    """An animated picture that any browser shows."""
    first, *rest = shown.frames
    # GIF counts hundredths of a second, and browsers take less than two of them for ten.
    duration = max(2, round(100 / shown.fps)) * 10
    options = {"save_all": True, "append_images": rest, "duration": duration, "loop": 0}
    write_whole(path, lambda file: first.save(file, "GIF", **options))


def keep_video(folder: Path, shown: Film, env_steps: int) -> Path:
    """Into the folder of a run that has made so many steps, where the last few are kept."""
    place = folder / VIDEOS
    path = place / f"step-{env_steps:014}.gif"
    try:
        place.mkdir(exist_ok=True)
        write_gif(path, shown)
        for old in sorted(place.glob("step-*.gif"))[:-KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise HeadraceError(f"{place} cannot be written ({error.strerror})") from error
    return path


def _picture(stage: Stage) -> Image.Image:
    image = Image.fromarray(stage.draw())
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    return image.quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
