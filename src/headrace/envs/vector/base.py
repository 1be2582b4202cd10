# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's vector interface over environments whose whole state is arrays."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from headrace.envs.spec import EnvSpec
from headrace.envs.vector.arguments import (
    checked_actions,
    checked_mask,
    checked_seeds,
    checked_space,
)
from headrace.errors import HeadraceError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class HostVectorEnv(gymnasium.vector.VectorEnv[Array, Any, Array]):
    """Environments in this process, as a `gymnasium.vector.VectorEnv`.

    All is as in Gymnasium 1.4's `SyncVectorEnv`; where that leaves a choice:

    - Rewards are float32.
    - Seeds: an int s gives environment i the random numbers (s, i), counted from `first_env`. A
      list gives each those of (its seed, 0), so that an environment is the same wherever it stands;
      one whose entry is None goes on. If no seed was ever given, the first reset draws one.
    - Where actions may be illegal, infos hold `action_mask`, int8 `[num_envs, actions]`, and
      `_action_mask`; where several play, `to_play` and `_to_play`.
    - With `copy=False` results are views of buffers that the next call writes again.
    - A call that is refused (with a `HeadraceError`) has changed nothing.
    """

    definition: ClassVar[str]
    tag: str
    """Says what the arrays of the state mean."""

    def __init__(
        self,
        spec: EnvSpec,
        num_envs: int,
        *,
        autoreset: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        observation_dtype: str | None = None,
        seed: int | list[int | None] | None = None,
        first_env: int = 0,
    ):
        spec.require(self.definition, f"definition='{self.definition}'")
        self.env_spec = spec
        self.num_envs = num_envs
        self.single_observation_space = checked_space(spec, observation_dtype)
        self.single_action_space = spec.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(spec.action_space, num_envs)
        self.autoreset_mode = autoreset
        self.metadata = {"autoreset_mode": autoreset, "render_modes": []}
        self.clock = 0
        """Steps taken since all environments were last seeded."""
        self._copy = copy
        self._next_seed = checked_seeds(seed, num_envs)
        self._first_env = first_env
        space = self.single_observation_space
        self._observation = np.zeros((num_envs, *(space.shape or ())), space.dtype)
        self._reward = np.zeros(num_envs, np.float32)
        self._terminated = np.zeros(num_envs, np.bool_)
        self._truncated = np.zeros(num_envs, np.bool_)
        self._advance: Callable[[Any], int] = self._refuse_unstarted
        """`_take_step`, or what says why no step can be taken now."""

    # What a definition provides:

    @abstractmethod
    def _take_step(self, actions: Any) -> int:
        """One step, into the buffers; how many episodes ended (or 0, where nobody asks: NEXT_STEP).

        Anything but what `checked_actions` returns may be refused by a TypeError or a ValueError.
        """

    @abstractmethod
    def _seed(self, seed: int | list[int], mask: Mask | None) -> None:
        """Give environments new random numbers, from their next reset on."""

    @abstractmethod
    def _begin(self, mask: Mask | None) -> None:
        """Reset, and write the observations of all."""

    @abstractmethod
    def _pending(self) -> Array:
        """Which environments wait to be reset: a view into the state."""

    @abstractmethod
    def _final_observations(self, count: int) -> tuple[Array, Array]:
        """Which environments' episodes the last step ended, and their last observations, copied."""

    def infos(self) -> dict[str, Any]:
        """What every reset and step tells of all environments."""
        return {}

    def _final_infos(self, envs: Array, ended: Mask) -> dict[str, Any]:
        """The same of the last moments of the episodes that the last step ended."""
        return {}

    @abstractmethod
    def _arrays(self) -> list[Array]:
        """The state."""

    @abstractmethod
    def _restore(self, arrays: list[Array]) -> None:
        """Take on a state of the same shapes, and write its observations."""

    # What Gymnasium asks for:

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere, or where `options["reset_mask"]` is set."""
        if self.closed:
            self._refuse_closed()
        mask = checked_mask(self.env_spec, self.num_envs, options)
        seeds = checked_seeds(seed, self.num_envs)
        started = self._advance != self._refuse_unstarted
        if not started:
            if mask is not None:
                raise HeadraceError("the first reset must be of all environments, without a mask")
            seeds = self._first_seeds(seeds)
        if isinstance(seeds, int):
            super().reset(seed=seeds)
        self._seed_where(seeds, mask)
        self._begin(mask)
        self._allow_steps()
        return (self._observation.copy() if self._copy else self._observation), self.infos()

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One step of every environment."""
        try:
            ended = self._advance(actions)
        except HeadraceError:
            raise
        except (TypeError, ValueError):  # not as the kernels take them: rare, so looked at only now
            ended = self._take_checked(actions)
        self.clock += 1
        infos = self.infos()
        if ended:
            infos |= self._note_ends(ended)
        if self._copy:
            return (
                self._observation.copy(),
                self._reward.copy(),
                self._terminated.copy(),
                self._truncated.copy(),
                infos,
            )
        return self._observation, self._reward, self._terminated, self._truncated, infos

    def render(self) -> NoReturn:
        """Not here: only Gymnasium's own environments draw."""
        raise HeadraceError(
            f"definition='{self.definition}' does not draw; use definition='gym' with a render_mode"
        )

    def close_extras(self, **_: Any) -> None:
        """Refuse whatever comes later."""
        self._advance = self._refuse_closed

    def __enter__(self) -> Self:
        """The environments themselves, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    # And what it has no word for:

    def state_dict(self) -> dict[str, Any]:
        """All that the future hangs on, copied: strings, a number and a list of arrays."""
        if self._advance in (self._refuse_unstarted, self._refuse_closed):
            self._advance(None)
        return {
            "tag": self.tag,
            "autoreset": self.autoreset_mode.name.lower(),
            "clock": self.clock,
            "arrays": [array.copy() for array in self._arrays()],
        }

    def load_state(self, state: dict[str, Any]) -> Array:
        """Go on from a `state_dict()` of environments like these; returns their observations."""
        if self.closed:
            self._refuse_closed()
        try:
            tag, mode, clock = state["tag"], state["autoreset"], state["clock"]
            given = [(array.shape, array.dtype) for array in state["arrays"]]
        except (AttributeError, KeyError, TypeError):
            raise HeadraceError("this is no state that state_dict() returned") from None
        wanted = [(array.shape, array.dtype) for array in self._arrays()]
        for what, theirs, ours in (
            ("tag", tag, self.tag),
            ("autoreset mode", mode, self.autoreset_mode.name.lower()),
            ("shapes", [shape for shape, _ in given], [shape for shape, _ in wanted]),
            ("dtypes", [dtype for _, dtype in given], [dtype for _, dtype in wanted]),
        ):
            if theirs != ours:
                raise HeadraceError(
                    f"the state has {what} {theirs}; these environments have {ours}"
                )
        self._restore(state["arrays"])
        self.clock = clock
        self._allow_steps()
        return self._observation.copy() if self._copy else self._observation

    def _first_seeds(self, seeds: int | list[int | None] | None) -> int | list[int | None]:
        seeds = self._next_seed if seeds is None else seeds
        if seeds is None:
            return secrets.randbits(64)
        if isinstance(seeds, list):
            return [secrets.randbits(64) if seed is None else seed for seed in seeds]
        return seeds

    def _seed_where(self, seeds: int | list[int | None] | None, mask: Mask | None) -> None:
        if seeds is None:
            return
        if isinstance(seeds, list):
            given = np.array([seed is not None for seed in seeds])
            mask = given if mask is None else mask & given
            self._seed([seed or 0 for seed in seeds], mask)
        else:
            self._seed(seeds, mask)
        if mask is None or mask.all():
            self.clock = 0

    def _note_ends(self, count: int) -> dict[str, Any]:
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._pending()[self._terminated | self._truncated] = 1
            self._advance = self._refuse_ended
            return {}
        envs, observations = self._final_observations(count)
        final = np.full(self.num_envs, None, dtype=object)
        for env, observation in zip(envs.tolist(), observations, strict=True):
            final[env] = observation
        ended = np.zeros(self.num_envs, np.bool_)
        ended[envs] = True
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": self._final_infos(envs, ended),  # empty in Gymnasium, too, if each is
            "_final_info": ended.copy(),
        }

    def _take_checked(self, actions: Any) -> int:
        checked = checked_actions(self.env_spec, self.num_envs, actions)
        try:
            return self._advance(checked)
        except HeadraceError:
            raise
        except ValueError as error:  # an action is illegal where it was to be taken
            raise HeadraceError(str(error)) from None

    def _allow_steps(self) -> None:
        disabled = self.autoreset_mode is AutoresetMode.DISABLED
        self._advance = (
            self._refuse_ended if disabled and self._pending().any() else self._take_step
        )

    def _refuse_unstarted(self, _: Any) -> NoReturn:
        raise HeadraceError("reset() comes before the first step")

    def _refuse_ended(self, _: Any) -> NoReturn:
        ended = self._pending().nonzero()[0].tolist()
        raise HeadraceError(
            f"the episodes of environments {ended} have ended; with autoreset disabled, "
            'reset(options={"reset_mask": ...}) comes before the next step'
        )

    def _refuse_closed(self, _: Any = None) -> NoReturn:
        raise HeadraceError("these environments are closed")
