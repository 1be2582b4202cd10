# SPDX-License-Identifier: Apache-2.0
"""An environment that is drawn, with somebody acting in it, one step at a time."""

from __future__ import annotations

import contextlib
import ctypes.util
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError

Image = npt.NDArray[np.uint8]
"""[height, width, 3]"""
Act = Callable[[Any, Any], Any]
"""An observation and the mask of legal actions, or None, to an action."""


class Stage:
    """Plays one episode after the other. For one thread: renderers belong to the one they draw in.

    An error says in one line why the environment cannot be drawn.
    """

    def __init__(self, spec: EnvSpec, seed: int | None = None):
        if "gym" not in spec.definitions:
            raise HeadraceError(f"{spec.id} cannot be drawn: it has no Gymnasium definition")
        without_display()
        self._limit = spec.max_episode_steps
        self._seed = seed
        self._env: Any = None
        self.episode = 0
        try:
            self._open(spec)
        except Exception as error:
            self.close()
            raise HeadraceError(f"{spec.id} cannot be drawn: {advised(error)}") from error

    def _open(self, spec: EnvSpec) -> None:
        with _quiet():
            self._env = env = spec.make_gym(render_mode="rgb_array")
            _cheaper(env)
            self.fps = float(env.metadata.get("render_fps") or 30)
            self.reset()
            self.draw()

    def reset(self) -> None:
        """Begin an episode."""
        self._obs, self._info = self._env.reset(seed=self._seed)
        self._seed = None
        self.episode += 1
        self.steps = 0
        self.score = 0.0
        self.ended = ""
        """How the episode has ended: "terminated" or "truncated"; empty while it goes on."""

    def step(self, act: Act | None) -> None:
        """One step, by somebody or else at random."""
        mask = self._info.get("action_mask")
        if act is not None:
            action = act(self._obs, mask)
        elif mask is None:
            action = self._env.action_space.sample()
        else:
            action = self._env.action_space.sample(np.asarray(mask, np.int8))
        if np.ndim(action) == 0:
            action = int(action)  # of a small dtype: environments compute with it
        self._obs, reward, terminated, truncated, self._info = self._env.step(action)
        self.steps += 1
        self.score += float(reward)
        if terminated:
            self.ended = "terminated"
        elif truncated or self.steps == self._limit:
            self.ended = "truncated"

    def draw(self) -> Image:
        """What it looks like now."""
        image: Any = self._env.render()
        if isinstance(image, list) and image:
            image = image[-1]
        if not (isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] in (3, 4)):
            raise HeadraceError("its render() gives no image")
        return np.ascontiguousarray(image[:, :, :3], np.uint8)

    def close(self) -> None:
        """Release it."""
        if self._env is not None:
            with contextlib.suppress(Exception), _quiet():
                self._env.close()


def without_display() -> None:
    """Have drawing libraries draw into memory. Only before one of them is loaded it has effect.

    MuJoCo draws by EGL, or by OSMesa, where there is no display and MUJOCO_GL does not say.
    """
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("LP_NUM_THREADS", "1")  # Mesa's: a viewer is to stay small
    if not (os.environ.get("MUJOCO_GL") or os.environ.get("DISPLAY")):
        for library, name in (("EGL", "egl"), ("OSMesa", "osmesa")):
            if ctypes.util.find_library(library):
                os.environ["MUJOCO_GL"] = name
                break


def _cheaper(env: gymnasium.Env) -> None:
    """MuJoCo without a graphics card spends most of its time on shadows and smooth edges."""
    model: Any = getattr(env.unwrapped, "model", None)
    if hasattr(model, "vis"):
        model.vis.quality.offsamples, model.vis.quality.shadowsize = 0, 1024


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What drivers and old environments print on the way is not for the reader of our lines."""
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stderr(io.StringIO()):
        yield


def advised(error: Exception) -> str:
    """What was wrong, in one line; what helps where MuJoCo found nothing to draw with."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if not {"mujoco", "gymnasium.envs.mujoco"} & set(sys.modules) or "to draw without" in reason:
        return reason
    how = os.environ.get("MUJOCO_GL")
    tried = f"MUJOCO_GL={how} did not work here" if how else "there is no display"
    return (
        f"{reason}. {tried}: to draw without a display, MuJoCo needs EGL (MUJOCO_GL=egl; Debian: "
        "apt-get install libegl1 libgl1-mesa-dri) or OSMesa (MUJOCO_GL=osmesa; libosmesa6)"
    )
