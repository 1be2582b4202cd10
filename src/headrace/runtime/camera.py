# SPDX-License-Identifier: Apache-2.0
"""Videos of the agent, made by the evaluator between its evaluations.

An episode takes seconds to draw. So it is drawn a picture at a time, with rests in between, by the
policy that was evaluated last when it began; evaluations go on meanwhile.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

from headrace.learn.algorithm import Acting, Algorithm
from headrace.runtime.plan import Plan

_SHARE = 0.1
"""Of one processor, at most, while an episode is filmed."""
_FIRST = 0.2
"""Of the time between two videos, before the first."""
_SHORTEST_S = 2.0
"""What of an episode is worth keeping where the run ends within it."""


class Camera:
    """Films every so often; an environment that cannot be drawn is said to be so once."""

    def __init__(self, plan: Plan, algorithm: Algorithm, say: Callable[[str], None]):
        self._plan, self._algorithm, self._say = plan, algorithm, say
        self._every = plan.settings.video_every
        self._due = time.monotonic() + _FIRST * (self._every or 0.0)
        self._filming: Any = None
        self._env_steps = 0
        self._rested_at = 0.0

    @property
    def ready(self) -> bool:
        """Whether `turn` has anything to do now."""
        return self._filming is not None and time.monotonic() >= self._rested_at

    def aim(self, acting: Acting, env_steps: int) -> None:
        """Begin to film this policy, if it is time."""
        if self._every is None or self._filming is not None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._every
        self._env_steps = env_steps
        self._try(lambda: self._begin(copy.deepcopy(acting)))

    def turn(self) -> None:
        """Add a picture; after the last one, the video is in the run's folder."""
        began = time.monotonic()
        self._try(self._go_on)
        now = time.monotonic()
        self._rested_at = now + (now - began) * (1 / _SHARE - 1)

    def close(self) -> None:
        """The run ends: keep what there is of an episode, if it is some seconds."""
        if self._filming is not None:
            shown = self._filming.shown
            self._try(self._keep if len(shown.frames) >= _SHORTEST_S * shown.fps else self._stop)

    def _begin(self, acting: Acting) -> None:
        from headrace.train.model import TrainedPolicy
        from headrace.train.video import Filming

        policy = TrainedPolicy(self._algorithm, acting, {})
        self._filming = Filming(policy, self._plan.played)

    def _go_on(self) -> None:
        if not self._filming.more():
            self._keep()

    def _keep(self) -> None:
        from headrace.train.video import keep_video

        shown = self._filming.shown
        self._stop()
        keep_video(self._plan.folder, shown, self._env_steps)

    def _stop(self) -> None:
        filming, self._filming = self._filming, None
        filming.close()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # drawing is other people's code
            self._say(f"no videos: {' '.join(str(error).split())}")
            self._every = None
            if self._filming is not None:
                self._stop()
