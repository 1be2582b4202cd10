# SPDX-License-Identifier: Apache-2.0
"""The agent playing, for whoever looks: one thread with an environment and the run's policy.

It plays at the environment's own pace and draws at most so many frames a second; it keeps no more
than a share of one processor busy with drawing, and none at all while nobody looks. Controls may be
set from any thread; frames and notes are given to `publish` in this one.
"""

from __future__ import annotations

import io
import json
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from headrace.envs import registry
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError
from headrace.runtime.viewer.policy import Policies, SavedPolicies
from headrace.train.run_folder import read_config
from headrace.train.stage import Stage, advised, without_display

FRAMES_PER_SECOND = 25.0
SHARE = 0.25
SPEEDS = (0.5, 1.0, 2.0, 4.0)
_NICENESS = 5
_PAUSE_AT_END_S = 0.8
_LOOK_FOR_WEIGHTS_S = 1.0

Publish = Callable[[bytes | dict[str, Any]], None]
"""A frame, or what `Player.state` is now."""


class Player(threading.Thread):
    """Plays until `stop()`. A policy or an environment that fails is told, and ends the playing."""

    def __init__(
        self,
        folder: Path,
        publish: Publish,
        share: float = SHARE,
        policies: Callable[[], Policies] | None = None,
    ):
        """`policies`, called in this thread, says who acts; else those that the run has saved."""
        super().__init__(name="player", daemon=True)
        self._folder = folder
        self._publish = publish
        self._share = share
        self._policies = policies or (lambda: SavedPolicies(folder))
        self._control = threading.Condition()
        self._stopping = False
        self._watched = False
        self._paused = False
        self._speed = 1.0
        self._note = "getting ready"
        self._frame: bytes | None = None

    # ---- from other threads ----

    def watch(self, watched: bool) -> None:
        """Whether anybody looks."""
        with self._control:
            self._watched = watched
            self._control.notify()

    def control(self, paused: bool | None = None, speed: float | None = None) -> None:
        """What the page's buttons say; a speed that there is not is passed over."""
        with self._control:
            self._paused = self._paused if paused is None else paused
            self._speed = speed if speed in SPEEDS else self._speed
            self._control.notify()
        self._publish(self.state())

    def state(self) -> dict[str, Any]:
        """Controls, and in `note` why there is nothing to be seen."""
        return {"paused": self._paused, "speed": self._speed, "note": self._note}

    @property
    def frame(self) -> bytes | None:
        """The last one, for who comes while it is paused."""
        return self._frame

    def stop(self) -> None:
        """End soon."""
        with self._control:
            self._stopping = True
            self._control.notify()

    # ---- in its own ----

    def run(self) -> None:
        """Play."""
        # Of this thread alone: whatever the machine has to do besides comes first.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        if not self._wait(lambda: self._watched):
            return
        without_display()  # before anything is imported that would look for one
        try:
            stage = Stage(_spec(read_config(self._folder)))
        except HeadraceError as error:
            self._say(advised(error))
            return
        try:
            self._say("")
            self._play(stage)
        except Exception as error:
            what = str(error) if isinstance(error, HeadraceError) else repr(error)
            self._say(f"The agent stopped playing: {what}")
        finally:
            stage.close()

    def _play(self, stage: Stage) -> None:
        policies = self._policies()
        cost = 0.0
        next_look = next_frame = 0.0
        self._show(stage, policies.name)
        due = time.monotonic()
        while self._wait(lambda: self._watched and not self._paused):
            now = time.monotonic()
            if now >= next_look:
                policies.refresh()
                next_look = now + _LOOK_FOR_WEIGHTS_S
            if stage.ended:
                stage.reset()
            stage.step(policies.act)
            now = time.monotonic()
            if now >= next_frame or stage.ended:
                self._show(stage, policies.name)
                spent = time.monotonic() - now
                cost = spent if cost == 0.0 else 0.9 * cost + 0.1 * spent
                next_frame = now + max(1 / FRAMES_PER_SECOND, cost / self._share)
            due = max(due, now - 0.1) + 1 / (stage.fps * self._speed)
            if stage.ended:
                due = max(due, now + _PAUSE_AT_END_S)
            self._sleep_until(due)

    def _show(self, stage: Stage, policy: str) -> None:
        caption = {
            "episode": stage.episode,
            "step": stage.steps,
            "return": round(stage.score, 3),
            "ended": stage.ended and f"{stage.ended}: return {stage.score:.6g}",
            "policy": policy,
        }
        head = json.dumps(caption).encode()
        jpeg = io.BytesIO()
        Image.fromarray(stage.draw()).save(jpeg, "JPEG", quality=85, subsampling=0)
        self._frame = struct.pack(">I", len(head)) + head + jpeg.getvalue()
        self._publish(self._frame)

    def _say(self, note: str) -> None:
        self._note = note
        self._publish(self.state())

    def _wait(self, until: Callable[[], bool]) -> bool:
        """False if it is to stop."""
        with self._control:
            self._control.wait_for(lambda: self._stopping or until())
            return not self._stopping

    def _sleep_until(self, due: float) -> None:
        with self._control:
            self._control.wait_for(lambda: self._stopping, max(0.0, due - time.monotonic()))


def _spec(config: dict[str, Any]) -> EnvSpec:
    limit = config["max_episode_steps"]
    return registry.spec(config["env"], max_episode_steps=limit or 0, **config["options"])
