# SPDX-License-Identifier: Apache-2.0
"""An environment that is drawn, with somebody acting in it, one step at a time."""

from __future__ import annotations

import contextlib
import ctypes.util
import io
import os
import sys
import warnings
from collections.abc import Callable
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
        self._limit = spec.max_episode_steps
        self._space = spec.action_space
        self._env = _make_drawn(spec)
        self.fps = float(self._env.metadata.get("render_fps") or 30)
        self.episode = 0
        self._seed = seed
        self.reset()
        try:
            self.draw()
        except Exception:
            self.close()
            raise

    def reset(self) -> None:
        """Begin an episode."""
        with warnings.catch_warnings(action="ignore"):
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
        else:
            action = self._space.sample() if mask is None else self._space.sample(np.int8(mask))
        with warnings.catch_warnings(action="ignore"):
            self._obs, reward, terminated, truncated, self._info = self._env.step(action)
        self.steps += 1
        self.score += float(reward)
        if terminated:
            self.ended = "terminated"
        elif truncated or self.steps == self._limit:
            self.ended = "truncated"

    def draw(self) -> Image:
        """What it looks like now."""
        with warnings.catch_warnings(action="ignore"):
            image: Any = self._env.render()
        if isinstance(image, list) and image:
            image = image[-1]
        if not (isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] in (3, 4)):
            raise HeadraceError("its render() gives no image")
        return np.ascontiguousarray(image[:, :, :3], np.uint8)

    def close(self) -> None:
        """Release it."""
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            self._env.close()


def without_display() -> None:
    """Have drawing libraries draw into memory. Only before one of them is loaded it has effect.

    MuJoCo draws by EGL, or by OSMesa, where there is no display and MUJOCO_GL does not say.
    """
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("LP_NUM_THREADS", "1")  # Mesa's: a viewer is to stay small
    if "MUJOCO_GL" not in os.environ and not os.environ.get("DISPLAY") and "mujoco" not in sys.modules:
        for library, name in (("EGL", "egl"), ("OSMesa", "osmesa")):
            if ctypes.util.find_library(library):
                os.environ["MUJOCO_GL"] = name
                break


def _make_drawn(spec: EnvSpec) -> gymnasium.Env:
    if "gym" not in spec.definitions:
        raise HeadraceError(f"{spec.id} cannot be drawn: it has no Gymnasium definition")
    without_display()
    try:
        # What drivers print of a missing display is said by our own message.
        with warnings.catch_warnings(action="ignore"), contextlib.redirect_stderr(io.StringIO()):
            env = spec.make_gym(render_mode="rgb_array")
    except HeadraceError:
        raise
    except Exception as error:
        raise _cannot(spec, error) from error
