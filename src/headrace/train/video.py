# SPDX-License-Identifier: Apache-2.0
"""Videos of an agent: animated GIFs, which every browser and most viewers of pictures show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from headrace.envs.spec import EnvSpec
from headrace.train.files import write_whole
from headrace.train.stage import Act, Stage

SIDE = 360
"""Pixels of the longer side, at most."""
FRAMES_PER_SECOND = 25.0
"""At most; of a faster environment some frames are left out."""


def write_video(
    path: Path, spec: EnvSpec, act: Act | None, *, seconds: float = 20.0, seed: int = 0
) -> None:
    """An episode, or the first `seconds` of it, at the environment's own pace.

    `act` None: random actions. Where the environment cannot be drawn there is an error of one line,
    and nothing is written.
    """
    stage = Stage(spec, seed)
    try:
        every = max(1, round(stage.fps / FRAMES_PER_SECOND))
        frames = _frames(stage, act, every, seconds)
        first = next(frames)
        duration = round(1000 * every / stage.fps)
        write_whole(
            path,
            lambda file: first.save(
                file, "GIF", save_all=True, append_images=frames, duration=duration, loop=0
            ),
        )
    finally:
        stage.close()


def _frames(stage: Stage, act: Act | None, every: int, seconds: float) -> Iterator[Image.Image]:
    yield _picture(stage)
    for step in range(1, max(1, round(seconds * stage.fps)) + 1):
        stage.step(act)
        if step % every == 0 or stage.ended:
            yield _picture(stage)
        if stage.ended:
            return


def _picture(stage: Stage) -> Image.Image:
    image = Image.fromarray(stage.draw())
    image.thumbnail((SIDE, SIDE), Image.Resampling.BILINEAR)
    return image.quantize(128, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
