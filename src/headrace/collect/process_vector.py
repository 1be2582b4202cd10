# SPDX-License-Identifier: Apache-2.0
"""Gymnasium environments in worker processes, as a `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from headrace.collect.channel import frame
from headrace.collect.shared_arrays import SharedArrays
from headrace.collect.vector_job import CALL, RESET, SET, STEP, Refusal, VectorArrays, VectorShare
from headrace.collect.worker_pool import WorkerPool, shares
from headrace.envs.spec import EnvSpec
from headrace.envs.vector.arguments import checked_mask, checked_seeds, refuse_impossible
from headrace.errors import HeadraceError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class ProcessVectorEnv(VectorEnv[Array, Any, Array]):
    """What Gymnasium's `SyncVectorEnv` gives, from worker processes with a share of it each.

    A step costs one message for each worker; actions and results are in shared memory, and infos
    are sent only where there are any. Seeds are Gymnasium's: an int s resets environment i with
    s + i. With `copy=False` observations are a view that the next call writes again.
    """

    def __init__(
        self,
        spec: EnvSpec,
        num_envs: int,
        *,
        autoreset: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        workers: int | None = None,
    ):
        self.closed = True  # until all is there
        spec.require("gym", "a vector environment in processes")
        _check_spaces(spec)
        self.env_spec = spec
        self.num_envs = num_envs
        self.single_observation_space = spec.observation_space
        self.single_action_space = spec.action_space
        self.observation_space = batch_space(spec.observation_space, num_envs)
        self.action_space = batch_space(spec.action_space, num_envs)
        self.autoreset_mode = autoreset
        self._copy = copy
        self._started = False
        memory = SharedArrays()
        self._arrays = VectorArrays(spec, num_envs, memory.zeros)
        self._shares = shares(num_envs, workers)
        self._pool = WorkerPool(
            memory,
            [VectorShare(spec, num_envs, autoreset, first, last) for first, last in self._shares],
            [f"environments {first} to {last - 1}" for first, last in self._shares],
        )
        metadata, self.render_mode = self._pool.introductions[0]
        self.metadata = {**metadata, "autoreset_mode": autoreset}
        self._step_frame = frame(STEP)
        self.closed = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes everywhere, or where `options["reset_mask"]` is set."""
        self._require_open()
        seeds = checked_seeds(seed, self.num_envs)
        if not isinstance(seeds, list):
            each = range(self.num_envs)
            seeds = [None] * self.num_envs if seeds is None else [seeds + i for i in each]
        mask, rest = None, options
        if options is not None and "reset_mask" in options:
            rest = {name: value for name, value in options.items() if name != "reset_mask"}
            given = {"reset_mask": options["reset_mask"]}
            mask = checked_mask(self.env_spec, self.num_envs, given)
        if not (self._started or mask is None):
            raise HeadraceError("the first reset must be of all environments, without a mask")
        work = [
            frame(RESET, (seeds[first:last], rest, None if mask is None else mask[first:last]))
            for first, last in self._shares
        ]
        infos = self._gather(self._pool.tell(work))
        self._started = True
        return self._observations(), infos

    def step(self, actions: Any) -> tuple[Array, Array, Mask, Mask, dict[str, Any]]:
        """One step of every environment."""
        arrays = self._arrays
        self._require_open()
        if not self._started:
            raise HeadraceError("reset() comes before the first step")
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._refuse_ended()
        self._take(actions)
        infos = self._gather(self._pool.tell_all(self._step_frame))
        return (
            self._observations(),
            arrays.reward.copy(),
            arrays.terminated.copy(),
            arrays.truncated.copy(),
            infos,
        )

    def render(self) -> tuple[Any, ...] | None:
        """A picture from each environment, in the `render_mode` they were made with."""
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute of it."""
        self._require_open()
        return self._named(self._pool.tell_all(frame(CALL, (name, args, kwargs))))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment; a list or a tuple has a value for each."""
        self._require_open()
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise HeadraceError(f"there are {len(each)} values for {self.num_envs} environments")
        work = [frame(SET, (name, list(each[first:last]))) for first, last in self._shares]
        self._named(self._pool.tell(work))

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The seed of every environment's generator."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Every environment's generator, copied."""
        return self.get_attr("np_random")

    def close_extras(self, **_: Any) -> None:
        """End the workers."""
        self._pool.close()

    def __enter__(self) -> Self:
        """The environments themselves, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _observations(self) -> Array:
        return self._arrays.obs.copy() if self._copy else self._arrays.obs

    def _gather(self, answers: list[Any]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for answer in answers:
            for env, info in answer or ():
                infos = self._add_info(infos, info, env)
        return infos

    def _named(self, answers: list[Any]) -> tuple[Any, ...]:
        for answer in answers:
            if isinstance(answer, Refusal):
                raise HeadraceError(f"{self.env_spec.id}: {answer.text}")
        return tuple(result for answer in answers for result in answer)

    def _take(self, actions: Any) -> None:
        own = self._arrays.action
        try:
            given = np.asarray(actions)
            if given.shape != own.shape:
                raise HeadraceError(
                    f"actions have shape {given.shape}; {self.env_spec.id} here takes {own.shape}"
                )
            np.copyto(own, given, casting="same_kind")
        except TypeError as error:
            raise HeadraceError(f"{self.env_spec.id} takes other actions: {error}") from None
        refuse_impossible(self.env_spec.id, self.single_action_space, own)

    def _refuse_ended(self) -> None:
        ended = (self._arrays.terminated | self._arrays.truncated).nonzero()[0].tolist()
        if ended:
            raise HeadraceError(
                f"the episodes of environments {ended} have ended; with autoreset disabled, "
                'reset(options={"reset_mask": ...}) comes before the next step'
            )

    def _require_open(self) -> None:
        if self.closed:
            raise HeadraceError("these environments are closed")


def _check_spaces(spec: EnvSpec) -> None:
    for what, space in (
        ("observations", spec.observation_space),
        ("actions", spec.action_space),
    ):
        if not isinstance(space, Box | Discrete | MultiDiscrete | MultiBinary):
            raise HeadraceError(
                f"{spec.id}: {what} of {type(space).__name__} spaces are not shared between "
                "processes; use gymnasium.make_vec, or wrap the environment"
            )
