# SPDX-License-Identifier: Apache-2.0
"""A video of a policy: the Gymnasium environment of the same rules, played and drawn by itself."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.train.files import write_whole
from headrace.train.stage import Act, Stage

VIDEOS = "videos"
"""Folder in a run's: what it filmed as it went."""
KEPT = 10
_SIDE = 360
"""Pixels of the longer side, at most."""
_FPS = 25.0
"""At most; of a faster environment some frames are left out."""
_MOST_FRAMES = 600


def film(act: Act | None, spec: EnvSpec, seed: int = 0) -> tuple[list[Image.Image], float]:
    """The pictures of one episode, or of its beginning, and its return; `act` None: at random.

    An error says in one line why the environment cannot be drawn.
    """
    stage = Stage(spec, seed)
    try:
        every = max(1, round(stage.fps / _FPS))
        # GIF counts hundredths of a second, and viewers take less than two of them for ten.
        duration = max(2, round(100 * every / stage.fps)) * 10
        pictures = [_picture(stage, duration)]
        while not stage.ended and len(pictures) < _MOST_FRAMES:
            stage.step(act)
            if stage.steps % every == 0 or stage.ended:
                pictures.append(_picture(stage, duration))
        return pictures, stage.score
    finally:
        stage.close()


def write_gif(path: Path, pictures: list[Image.Image]) -> None:
    """An animated picture that any browser shows."""
    first, *rest = pictures
    write_whole(
        path, lambda file: first.save(file, "GIF", save_all=True, append_images=rest, loop=0)
    )


def keep_video(folder: Path, act: Act | None, spec: EnvSpec, env_steps: int) -> Path:
    """Film what a run has learnt so far into its folder, where the last few are kept."""
    pictures, _ = film(act, spec)
    place = folder / VIDEOS
    try:
        place.mkdir(exist_ok=True)
        for old in sorted(place.glob("step-*.gif"))[: 1 - KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise HeadraceError(f"{place} cannot be written ({error.strerror})") from error
    path = place / f"step-{env_steps:014}.gif"
    write_gif(path, pictures)
    return path


def _picture(stage: Stage, duration: int) -> Image.Image:
    """Small, and of few colours: what is kept in memory is what the file will have."""
    image = Image.fromarray(stage.draw())
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    picture = image.quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    picture.info["duration"] = duration
    return picture
