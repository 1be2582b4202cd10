# SPDX-License-Identifier: Apache-2.0
"""A video of a policy: the Gymnasium environment of the same rules, played and drawn by itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.train.files import write_whole
from headrace.train.model import TrainedPolicy

_FPS = 25
_MOST_STEPS = 2000


class Film(NamedTuple):
    """An episode."""

    frames: list[np.ndarray]
    """[height, width, 3] each."""
    fps: float
    total: float
    """Its return."""


def film(policy: TrainedPolicy, spec: EnvSpec, seed: int = 0) -> Film:
    """Play and draw an episode: about 25 pictures for each second that it lasts."""
    if "gym" not in spec.definitions:
        raise HeadraceError(f"{spec.id} has no gym definition, and only that draws")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame looks for no screen
    env = _drawn(spec)
    limit = min(spec.max_episode_steps or _MOST_STEPS, _MOST_STEPS)
    fps = env.metadata.get("render_fps") or _FPS
    every = max(round(fps / _FPS), 1)
    frames, total = [], 0.0
    with contextlib.closing(env):
        obs, info = env.reset(seed=seed)
        for step in range(limit):
            if step % every == 0:
                frames.append(_frame(env, spec))
            action = policy(obs, info.get("action_mask"))
            obs, reward, terminated, truncated, info = env.step(_as_action(action))
            total += float(reward)
            if terminated or truncated:
                break
        frames.append(_frame(env, spec))
    return Film(frames, fps / every, total)


def write_gif(path: Path, shown: Film) -> None:
    """An animated picture that any browser shows."""
    from PIL import Image

    palette = Image.fromarray(shown.frames[0]).quantize(64)
    first, *rest = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in shown.frames
    ]
    options: dict[str, Any] = {"save_all": True, "append_images": rest, "loop": 0}
    # GIF counts hundredths of a second.
    options |= {"duration": max(round(100 / shown.fps), 2) * 10, "optimize": False}
    write_whole(path, lambda file: first.save(file, format="GIF", **options))


def _drawn(spec: EnvSpec) -> Any:
    try:
        env = spec.make_gym(render_mode="rgb_array")
    except TypeError:
        raise HeadraceError(f"{spec.id} does not draw: it takes no render_mode") from None
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        env.close()
        raise HeadraceError(f"{spec.id} does not draw pictures (render_mode 'rgb_array')")
    return env


def _frame(env: Any, spec: EnvSpec) -> np.ndarray:
    frame = env.render()
    if not (isinstance(frame, np.ndarray) and frame.ndim == 3):
        raise HeadraceError(f"{spec.id} draws no pictures: render() gave {type(frame).__name__}")
    return frame


def _as_action(action: Any) -> Any:
    return int(action) if np.ndim(action) == 0 and np.asarray(action).dtype.kind in "iu" else action
