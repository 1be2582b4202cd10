# SPDX-License-Identifier: Apache-2.0
"""How good a policy is: whole episodes, side by side, by whatever steps the environment fastest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from headrace.collect.rungs import make_collector
from headrace.envs.spec import EnvSpec
from headrace.learn.algorithm import Acting, Algorithm

LONGEST = 10_000
"""Steps of an episode where the environment sets no limit."""
_SIDE_BY_SIDE = 256
_BYTES = 1 << 24
"""Of observations kept at a time."""
_SURE = 2.0
"""Standard errors that a mean must be above a target to be more than luck."""


def evaluate(
    algorithm: Algorithm,
    acting: Acting,
    spec: EnvSpec,
    episodes: int,
    seed: int,
    deterministic: bool = True,
    library: Literal["numpy", "jax"] | None = None,
) -> np.ndarray:
    """Returns [episodes] of the policy with these parameters, in environments of their own.

    Each environment gives as many of its first episodes as the others: whichever are over first
    would be the short ones. The rewards of several players are added up as they come; give the
    environment whose opponent is inside for those. The library is JAX where observations are images
    or boards, unless one is given: for what small networks do in a step, NumPy is faster.
    """
    if library is None:
        library = "jax" if len(spec.observation_space.shape or ()) == 3 else "numpy"
    limited = replace(spec, max_episode_steps=spec.max_episode_steps or LONGEST)
    num_envs = min(episodes, _SIDE_BY_SIDE)
    wanted = np.full(num_envs, episodes // num_envs)
    wanted[: episodes % num_envs] += 1
    policy = algorithm.policy(library, deterministic=deterministic)
    returns: list[list[float]] = [[] for _ in range(num_envs)]
    with make_collector(
        limited,
        rung=_rung(spec),
        num_envs=num_envs,
        steps=_steps(spec, num_envs),
        policy=policy,
        seed=seed,
    ) as collector:
        while any(len(row) < count for row, count in zip(returns, wanted, strict=True)):
            batch = collector.collect(acting)
            assert batch.end_at is not None
            for env, total in zip(batch.end_at[:, 1], batch.episode_return, strict=True):
                if len(returns[env]) < wanted[env]:
                    returns[env].append(float(total))
    return np.concatenate(returns)


def proven(
    returns: np.ndarray, until: float, most: int, more: Callable[[int], np.ndarray]
) -> np.ndarray:
    """These returns and, where their mean reaches a target that it may have reached by luck, more.

    Of many policies, the first whose mean over a few episodes reaches a target is not yet one that
    does so. `more(n)` plays as many again, for the n-th time; it is asked for as long as the mean
    over all of them is neither below the target nor clearly above, and no further than to `most`
    episodes.
    """
    parts, found = [returns], returns
    while until <= found.mean() < until + _SURE * found.std() / len(found) ** 0.5:
        if len(found) + len(returns) > most:
            break
        parts.append(more(len(parts)))
        found = np.concatenate(parts)
    return found


def _rung(spec: EnvSpec) -> str:
    """One that runs in this process and takes a policy of NumPy's."""
    return {"native": "native", "array": "numpy", "gym": "python"}[
        next(name for name in ("native", "array", "gym") if name in spec.definitions)
    ]


def _steps(spec: EnvSpec, num_envs: int) -> int:
    space = spec.observation_space
    row = int(np.prod(space.shape or ())) * np.dtype(space.dtype or np.float32).itemsize
    return int(np.clip(_BYTES // (row * num_envs), 1, 50))
