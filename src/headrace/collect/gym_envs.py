# SPDX-License-Identifier: Apache-2.0
"""Gymnasium environments of one process, stepped into the buffers of a batch."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from itertools import islice
from typing import Any

import gymnasium
import numpy as np

from headrace.collect.base import HostBuffers, HostPolicy, Request
from headrace.collect.turns import Turns
from headrace.envs.spec import EnvSpec
from headrace.errors import HeadraceError

_DRAWS_AHEAD = 4096
"""Random actions drawn at once where batches are smaller: a draw costs as much as 20 steps."""


def env_seed(seed: int, index: int) -> int:
    """What environment `index` of a job is first reset with, wherever it runs.

    The first word of the `index`-th child that NumPy's `SeedSequence(seed)` spawns: 32 bits, which
    every environment takes.
    """
    return int(np.random.SeedSequence(int(seed), spawn_key=(index,)).generate_state(1)[0])


def make_envs(spec: EnvSpec, num_envs: int) -> tuple[list[gymnasium.Env], ExitStack]:
    """Bare environments with the spaces that `spec` says, and what closes them all."""
    envs = []
    with ExitStack() as closing:
        for _ in range(num_envs):
            env = spec.make_gym()
            closing.callback(env.close)
            envs.append(env)
            for what in ("observation_space", "action_space"):
                made, said = getattr(env, what), getattr(spec, what)
                if type(made) is not type(said) or made.shape != said.shape:
                    raise HeadraceError(f"{spec.id} has the {what} {made}; it was to have {said}")
        return envs, closing.pop_all()
    raise AssertionError("unreachable")


def blame(error: Exception, spec: EnvSpec, index: int) -> None:
    """Say in an environment's error which one it was."""
    error.add_note(f"(raised by environment {index} of {spec.id})")


def as_actions(actions: np.ndarray) -> list[Any]:
    """Actions [n, ...] as environments take them: Python integers, or rows."""
    return actions.tolist() if actions.ndim == 1 and actions.dtype.kind in "iu" else list(actions)


class GymSampler:
    """Environments, their episodes and their policy; each `collect` fills the buffers it was given.

    Random actions depend on nothing but an environment's own mask, so that each takes all its T
    steps in a row; with a policy all take one step for each call of it. Both give the same.
    """

    def __init__(self, request: Request, out: HostBuffers):
        self._request = request
        self._out = out
        self._policy = HostPolicy(request)
        self._drawn: list[np.ndarray] = []
        self._limit = request.spec.max_episode_steps or sys.maxsize
        self._clock = 0
        self._began = [0] * request.num_envs
        """When, by the clock, each environment's episode began."""
        self._returns: list[Any] = [0.0] * request.num_envs
        self._turns = Turns(request.spec, out)
        self._envs, self._closing = make_envs(request.spec, request.num_envs)
        try:
            self._seed()
        except BaseException:
            self.close()
            raise

    def _seed(self) -> None:
        wanted = self._out.obs.shape[2:]
        for i, env in enumerate(self._envs):
            index = self._request.first_env + i
            try:
                obs, info = env.reset(seed=env_seed(self._request.seed, index))
                self._turns.note(-1, i, info)
            except Exception as error:
                blame(error, self._request.spec, index)
                raise
            if np.shape(obs) != wanted:
                raise HeadraceError(
                    f"{self._request.spec.id}: reset gave an observation of shape {np.shape(obs)}; "
                    f"by its space it must be {wanted}"
                )
            self._out.obs[-1, i] = obs

    def collect(self, params: Any = None) -> int:
        """The next T steps of every environment; returns how many episodes ended."""
        out = self._out
        out.begin()
        if self._policy.random:
            return self._collect_random()
        if self._request.policy == "random":
            return self._collect_legal()
        ends = 0
        for t in range(self._request.steps):
            action, extras = self._policy.act(params, out.obs[t], self._clock, out.mask_at(t))
            out.action[t] = action
            out.set_extras(t, extras)
            ends = self.step(t, action, ends)
        return ends

    def step(self, t: int, actions: np.ndarray, ends: int) -> int:
        """Step t of the batch, with actions [n, ...] that belong to the environments from now on.

        `ends` is how many episodes have ended in this batch; returns how many have now.
        """
        self._clock += 1
        out, clock, limit, began = self._out, self._clock, self._limit, self._began
        returns, turns, telling = self._returns, self._turns, self._turns.telling
        rows, rewards = out.obs[t + 1], []
        out.terminated[t] = False  # rows of flags and rewards: one by one they would cost more
        out.truncated[t] = False
        i = 0
        try:
            for i, action in enumerate(as_actions(actions)):
                obs, reward, terminated, truncated, info = self._envs[i].step(action)
                rewards.append(reward)
                returns[i] += reward
                if terminated or truncated or clock - began[i] >= limit:
                    length, began[i] = clock - began[i], clock
                    turns.note_end(ends, info)
                    ends = self._note_end(ends, t, i, obs, terminated, truncated, length)
                    obs, info = self._envs[i].reset()
                rows[i] = obs
                if telling:
                    turns.note(t + 1, i, info)
        except Exception as error:
            blame(error, self._request.spec, self._request.first_env + i)
            raise
        out.reward[t] = rewards
        return ends

    def close(self) -> None:
        """Close the environments."""
        self._closing.close()

    def _step_one(self, t: int, i: int, action: Any, clock: int, ends: int) -> int:
        """Step t of the batch for environment i, by whose end the clock shows `clock`."""
        out, env = self._out, self._envs[i]
        obs, reward, terminated, truncated, info = env.step(action)
        out.reward[t, i] = reward
        out.terminated[t, i] = terminated
        out.truncated[t, i] = truncated
        self._returns[i] += reward
        length = clock - self._began[i]
        if terminated or truncated or length >= self._limit:
            self._began[i] = clock
            self._turns.note_end(ends, info)
            ends = self._note_end(ends, t, i, obs, terminated, truncated, length)
            obs, info = env.reset()
        out.obs[t + 1, i] = obs
        self._turns.note(t + 1, i, info)
        return ends

    def _collect_legal(self) -> int:
        """Random actions, those of `random_legal`, for one environment after the other."""
        out, steps, start = self._out, self._request.steps, self._clock + 1
        words = self._policy.words(self._clock, steps).T.tolist()
        ends = i = 0
        try:
            for i, its_words in enumerate(words):
                for t, word in enumerate(its_words):
                    action = self._turns.choose(i, word)
                    out.action[t, i] = action
                    ends = self._step_one(t, i, action, start + t, ends)
        except Exception as error:
            blame(error, self._request.spec, self._request.first_env + i)
            raise
        self._clock += steps
        return out.take_ends(out, np.arange(ends))

    def _collect_random(self) -> int:
        actions = self._next_draw()
        out = self._out
        out.action[...] = actions
        out.terminated[...] = False
        out.truncated[...] = False
        ends = 0
        for i in range(len(self._envs)):
            try:
                ends = self._run(i, as_actions(actions[:, i]), ends)
            except Exception as error:
                blame(error, self._request.spec, self._request.first_env + i)
                raise
        self._clock += self._request.steps
        return ends if len(self._envs) == 1 else out.take_ends(out, np.arange(ends))

    def _run(self, i: int, actions: list[Any], ends: int) -> int:
        """Environment i for the whole batch."""
        env, step, limit = self._envs[i], self._envs[i].step, self._limit
        rows = self._out.obs[1:, i]
        # A row must be an array, to be written in place.
        todo = zip(actions, rows if rows.ndim > 1 else rows[:, None], strict=True)
        rewards: list[Any] = []
        keep = rewards.append
        began, counted = self._began[i] - self._clock, 0
        while (done := len(rewards)) < len(actions):
            obs = row = terminated = truncated = None
            # No further than to the time limit: so it costs nothing within.
            for action, row in islice(todo, began + limit - done):
                obs, reward, terminated, truncated, _ = step(action)
                row[...] = obs
                keep(reward)
                if terminated or truncated:
                    break
            done = len(rewards)
            if terminated or truncated or done - began == limit:
                assert row is not None
                self._returns[i] += sum(rewards[counted:])
                ends = self._note_end(ends, done - 1, i, obs, terminated, truncated, done - began)
                row[...], _ = env.reset()
                began = counted = done
        self._returns[i] += sum(rewards[counted:])
        self._began[i] = began + self._clock
        self._out.reward[:, i] = rewards
        return ends

    def _note_end(
        self, ends: int, t: int, i: int, obs: Any, terminated: Any, truncated: Any, length: int
    ) -> int:
        self._out.terminated[t, i] = terminated
        self._out.truncated[t, i] = truncated or length >= self._limit
        total, self._returns[i] = self._returns[i], 0.0
        return self._out.append_ends(ends, t, (i,), obs, total, length)

    def _next_draw(self) -> np.ndarray:
        if not self._drawn:
            steps, num_envs = self._request.steps, self._request.num_envs
            batches = max(1, _DRAWS_AHEAD // (steps * num_envs))
            actions = self._policy.draw(self._clock, steps * batches)
            self._drawn = np.split(actions, batches)[::-1]
        return self._drawn.pop()
