# SPDX-License-Identifier: Apache-2.0
"""Small Gymnasium environments with a habit each; also imported by worker processes."""

import os
import re
import signal
import sys
import time
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete


class Counter(gymnasium.Env):
    """Observes episode, step and the last action; may hand out the same array again and again."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 7}

    def __init__(
        self,
        length: int = 5,
        cut: int = 0,
        talkative: bool = False,
        reuse: bool = True,
        render_mode: str | None = None,
    ):
        self.observation_space = Box(-1e3, 1e3, (3,), np.float64)
        self.action_space = Discrete(3, start=4)
        self.length, self.cut, self.talkative, self.reuse = length, cut, talkative, reuse
        self.render_mode = render_mode
        self.seen = np.zeros(3)
        self.closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.seen[:] = self.seen[0] + 1, 0, (options or {}).get("start", 0)
        return self.observation(), {"begun": int(self.seen[0])} if self.talkative else {}

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict]:
        self.seen[1:] = self.seen[1] + 1, action
        done = int(self.seen[1])
        noise = self.np_random.random()
        info: dict[str, Any] = {}
        if self.talkative and done % 2:
            info = {
                "done": done,
                "nested": {"noise": noise},
                "word": "odd",
                "row": self.seen.copy(),
            }
        return self.observation(), action + noise, done == self.length, done == self.cut, info

    def observation(self) -> np.ndarray:
        return self.seen if self.reuse else self.seen.copy()

    def render(self) -> str:
        return f"{self.seen[1]:.0f} steps"

    def twice(self, number: int) -> int:
        return 2 * number

    def close(self) -> None:
        self.closed = True


class Discretes(gymnasium.Env):
    """Discrete observations, several discrete actions at once."""

    def __init__(self, binary: bool = False):
        self.observation_space = MultiBinary(4) if binary else Discrete(50)
        self.action_space = MultiDiscrete([3, 5])
        self.at = 0

    def observation(self) -> Any:
        if isinstance(self.observation_space, Discrete):
            return self.at
        return np.array([self.at >> bit & 1 for bit in range(4)], np.int8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(7))
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.at += int(action[0]) + int(action[1]) // 4
        return self.observation(), float(action @ [1, 10]), self.at > 13, False, {}


class Walker(gymnasium.Env):
    """Discrete observations and a Discrete action: what the collectors take."""

    def __init__(self) -> None:
        self.observation_space = Discrete(9)
        self.action_space = Discrete(2)
        self.at = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(3))
        return self.at, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.at += 1 + action
        return self.at, 1.0, self.at > 6, False, {}


class Trouble(gymnasium.Env):
    """Does something bad at its third step, or when it is made in another process than `owner`.

    With `bad_seed` only the environment reset with that seed does; those with others do `others`.
    """

    def __init__(
        self, how: str = "", others: str = "", bad_seed: int | None = None, owner: int = 0
    ):
        self.observation_space = Box(-1, 1, (2,))
        self.action_space = Discrete(2)
        self.how, self.others, self.bad_seed, self.habit = how, others, bad_seed, how
        if how == "unmade" and os.getpid() != owner:
            raise RuntimeError("no licence here")
        self.done = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.habit = self.how if self.bad_seed in (None, seed) else self.others
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.done += 1
        if self.done == 3:
            self.misbehave()
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def misbehave(self) -> None:
        if self.habit == "raise":
            raise KeyError("a bug in the environment")
        if self.habit == "leave":
            sys.exit(5)
        if self.habit == "exit":
            os._exit(7)
        if self.habit == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.habit == "sleep":
            time.sleep(600)
        if self.habit == "spin":  # without ever giving up the interpreter
            re.match(r"(a+)+$", "a" * 60 + "b")


class Inspector(gymnasium.Env):
    """Observes the process that it is in."""

    heavy = ("jax", "jaxlib", "matplotlib", "torch", "scipy", "pygame", "pytest")

    def __init__(self) -> None:
        self.observation_space = Box(-1e9, 1e9, (3,), np.float64)
        self.action_space = Discrete(2)

    def observation(self) -> np.ndarray:
        loaded = sum(name in sys.modules for name in self.heavy)
        return np.array([loaded, int(os.environ.get("OPENBLAS_NUM_THREADS", 0)), os.getpid()])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        return self.observation(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        return self.observation(), 0.0, False, False, {}


class Nim(gymnasium.Env):
    """Two players take one to three matches by turns; who takes the last has won.

    Actions are the matches taken, 4 to 6 meaning 1 to 3; the mask is one array, changed in place.
    """

    def __init__(self, matches: int = 10, forget_at: int = -1, wrong: str = ""):
        self.observation_space = Box(0, 20, (2,), np.uint8)
        self.action_space = Discrete(3, start=4)
        self.matches, self.forget_at, self.wrong = matches, forget_at, wrong
        self.mask = np.zeros(3, np.bool_)
        self.left = self.player = self.done = 0

    def told(self) -> tuple[Any, dict[str, Any]]:
        self.mask[:] = np.arange(1, 4) <= self.left
        info = {"action_mask": self.mask, "to_play": self.player}
        if self.done == self.forget_at:
            info = {"action_mask": self.mask[:2]} if self.wrong else {}
        return np.array([self.left, self.player], np.uint8), info

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.left, self.player = self.matches + int(self.np_random.integers(5)), 0
        return self.told()

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        assert self.mask[action - 4], "illegal"
        self.done += 1
        self.left -= int(action) - 3
        self.player = 1 - self.player
        obs, info = self.told()
        return obs, float(self.left == 0), self.left == 0, False, info
