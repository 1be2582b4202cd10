# SPDX-License-Identifier: Apache-2.0
"""The native core, as Python sees it: kernels over arrays that belong to the caller."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from headrace import aligned
from headrace.errors import HeadraceError

# libgomp reads this when it is loaded. Its own choice, to spin for milliseconds after every
# parallel loop, takes the processor from the learner; microseconds are enough between two steps.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

from headrace import _native

Autoreset = _native.Autoreset
BoundRollout = _native.BoundRollout
_BOOK = {name: position for position, name in enumerate(_native.BOOKKEEPING)}


def default_isa() -> str:
    """The newest instruction set this processor runs, or HEADRACE_ISA."""
    return os.environ.get("HEADRACE_ISA") or _native.supported_isas()[-1]


def max_threads() -> int:
    """Processors this process may run on."""
    return _native.max_threads()


class NativeDefinition:
    """One environment's compiled kernel with its options; its states are plain arrays.

    A state is `uint32[words, num_envs]` (layout "lanes") or `uint8[num_envs, bytes]` ("rows");
    `tag` says what its bytes mean. Copy it, save it, move rows of it elsewhere: the future goes
    with it.
    """

    def __init__(self, name: str, options: dict[str, Any], isa: str | None = None):
        try:
            self.kernel = _native.NativeEnv(name, options, isa or default_isa())
        except (KeyError, TypeError, ValueError) as error:
            raise HeadraceError(str(error.args[0])) from error
        kernel = self.kernel
        self.observation_space = (
            gymnasium.spaces.Box(0, 255, tuple(kernel.observation_shape), np.uint8)
            if kernel.observation_dtype == "uint8"
            else gymnasium.spaces.Box(
                np.array(kernel.observation_low, np.float32),
                np.array(kernel.observation_high, np.float32),
            )
        )
        self.action_space: gymnasium.Space = (
            gymnasium.spaces.Discrete(kernel.action_size)
            if kernel.discrete
            else gymnasium.spaces.Box(
                kernel.action_low, kernel.action_high, (kernel.action_size,), np.float32
            )
        )
        self.masked: bool = kernel.masked
        self.players: int = kernel.players

    @property
    def tag(self) -> str:
        """Name, layout and version of the state's bytes."""
        return f"{self.kernel.name}/{self.kernel.layout}/{self.kernel.version}"

    @property
    def env_axis(self) -> int:
        """The axis of a state along which environments lie."""
        return 1 if self.kernel.layout == "lanes" else 0

    def make_state(
        self, num_envs: int, seed: int | Sequence[int] = 0, first_env: int = 0
    ) -> npt.NDArray[Any]:
        """States of environments that were never reset.

        With one seed, environment i of the job (`first_env` is the first of these) has its own
        random numbers under that seed. With a seed for each, an environment is the same wherever it
        stands.
        """
        lanes = self.kernel.layout == "lanes"
        state = aligned.zeros(self.kernel.state_shape(num_envs), np.uint32 if lanes else np.uint8)
        self.seed(state, seed, first_env)
        return state

    def seed(
        self,
        state: npt.NDArray[Any],
        seed: int | Sequence[int],
        first_env: int = 0,
        mask: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Give environments (where `mask` is set) a new seed; the next reset is their first."""
        book = self.book(state)
        where = slice(None) if mask is None else mask
        num_envs = book.shape[1]
        shared = isinstance(seed, int | np.integer)
        index = np.arange(first_env, first_env + num_envs) if shared else np.zeros(num_envs)
        seeds = np.broadcast_to(np.array(seed, np.uint64), (num_envs,))
        book[_BOOK["index"], where] = index[where]
        book[_BOOK["seed_low"], where] = (seeds & np.uint64(0xFFFFFFFF))[where]
        book[_BOOK["seed_high"], where] = (seeds >> np.uint64(32))[where]
        book[_BOOK["episode"], where] = 0

    def book(self, state: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
        """The bookkeeping words, a view `[word, num_envs]`; see `headrace._native.BOOKKEEPING`."""
        count = len(_BOOK)
        if self.kernel.layout == "lanes":
            return state[-count:]
        return state.view(np.uint32)[:, :count].T

    def pending(self, state: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
        """1 where an environment has ended and waits to be reset: a view."""
        return self.book(state)[_BOOK["pending"]]
