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


def film(policy: Act | None, spec: EnvSpec, seed: int = 0) -> Film:
    """Play and draw an episode: about 25 pictures for each second that it lasts.

    A policy of None acts at random. An error says in one line why there is nothing to be seen.
    """
    stage = Stage(spec, seed)
    try:
        every = max(1, round(stage.fps / _FPS))
        frames = [_picture(stage)]
        while not stage.ended and stage.steps < _MOST_STEPS:
            stage.step(policy)
            if stage.steps % every == 0 or stage.ended:
                frames.append(_picture(stage))
        return Film(frames, stage.fps / every, stage.score)
    finally:
        stage.close()


def write_gif(path: Path, shown: Film) -> None:
    """An animated picture that any browser shows."""
    first, *rest = shown.frames
    # GIF counts hundredths of a second, and browsers take less than two of them for ten.
    duration = max(2, round(100 / shown.fps)) * 10
    options = {"save_all": True, "append_images": rest, "duration": duration, "loop": 0}
    write_whole(path, lambda file: first.save(file, "GIF", **options))


def keep_video(folder: Path, policy: Act | None, spec: EnvSpec, env_steps: int) -> Path:
    """Film what a run has learnt so far into its folder, where the last few are kept."""
    shown = film(policy, spec)
    place = folder / VIDEOS
    try:
        place.mkdir(exist_ok=True)
        for old in sorted(place.glob("step-*.gif"))[: 1 - KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise HeadraceError(f"{place} cannot be written ({error.strerror})") from error
    path = place / f"step-{env_steps:014}.gif"
    write_gif(path, shown)
    return path


def _picture(stage: Stage) -> Image.Image:
    image = Image.fromarray(stage.draw())
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    return image.quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
