# SPDX-License-Identifier: Apache-2.0
"""What Gymnasium environments tell in their infos of legal actions and of whose turn it is."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from headrace.collect.base import HostBuffers
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError


class Turns:
    """Writes masks, as bits, and players into a batch; does nothing where there are none."""

    def __init__(self, spec: EnvSpec, out: HostBuffers):
        self._spec, self._out = spec, out
        self._legal: list[Any] = [()] * out.reward.shape[1]
        """The last mask of each environment, as it was told."""
        self._actions = self._first = 0
        if spec.masked:
            assert isinstance(spec.action_space, gymnasium.spaces.Discrete)
            self._actions, self._first = int(spec.action_space.n), int(spec.action_space.start)

    @property
    def telling(self) -> bool:
        """Whether there is anything to write."""
        return self._out.mask is not None or self._out.to_play is not None

    def note(self, t: int, i: int, info: dict[str, Any]) -> None:
        """What environment i tells with `obs[t]`."""
        out = self._out
        if out.mask is not None:
            self._legal[i] = mask = self._mask(info)
            out.mask[t, i] = np.packbits(mask, bitorder="little")
        if out.to_play is not None:
            out.to_play[t, i] = self._player(info)

    def note_end(self, row: int, info: dict[str, Any]) -> None:
        """What an environment tells with `final_obs[row]`."""
        out = self._out
        if out.final_mask is not None:
            out.final_mask[row] = np.packbits(self._mask(info), bitorder="little")
        if out.final_to_play is not None:
            out.final_to_play[row] = self._player(info)

    def choose(self, i: int, word: int) -> int:
        """The legal action of environment i that `random_legal` chooses by a random word."""
        legal = np.flatnonzero(self._legal[i])
        return self._first + (int(legal[word * len(legal) >> 32]) if len(legal) else 0)

    def _mask(self, info: dict[str, Any]) -> Any:
        mask: Any = info.get("action_mask")
        if np.shape(mask) != (self._actions,):
            raise HeadraceError(
                f"{self._spec.id}: info['action_mask'] has shape {np.shape(mask)} at a reset or "
                f"step; it must be there each time, {self._actions} zeros and ones"
            )
        return mask

    def _player(self, info: dict[str, Any]) -> int:
        player = info.get("to_play")
        if player is None or not 0 <= player < self._spec.players:
            raise HeadraceError(
                f"{self._spec.id}: info['to_play'] is {player} at a reset or step; it must be "
                f"there each time, 0 to {self._spec.players - 1}"
            )
        return int(player)
