# SPDX-License-Identifier: Apache-2.0
"""XLA against PyTorch on the same text, where calls into the backend are what differs.

CartPole's array definition, its time limit and its resets, over tensors of torch (eager, every
operation a call) and over arrays of JAX (one call a step, or one for all steps). Actions and the
first states of new episodes are drawn beforehand for both, so that no generator is timed; both keep
every transition.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch
from harness import Benchmark, repeat
from timing import Rate

from headrace.envs.array.base import observation
from headrace.envs.array.cartpole import CartPole, CartPoleState
from headrace.envs.array.namespace import Namespace, namespace

STEPS, LIMIT = 128, 500
ENV = CartPole()


def one_step(ns: Namespace, carry: Any, given: Any) -> tuple[Any, Any]:
    """A step of every environment with a given action, and the given first state where it ends."""
    state, elapsed = carry
    action, fresh = given
    before = observation(ns, ENV, state)
    stepped, reward, terminated = ENV.step(ns, state, action)
    truncated = elapsed + 1 >= LIMIT
    ended = terminated | truncated
    after = ns.where(ended, fresh, stepped)
    row = (before, reward, terminated, truncated, observation(ns, ENV, stepped))
    return (after, ns.xp.where(ended, 0 * elapsed, elapsed + 1)), row


def drawn(num_envs: int) -> tuple[np.ndarray, np.ndarray]:
    """Actions [T, N] and first states [T + 1, 4, N]."""
    generator = np.random.default_rng(0)
    actions = generator.integers(2, size=(STEPS, num_envs), dtype=np.int32)
    return actions, generator.uniform(-0.05, 0.05, (STEPS + 1, 4, num_envs)).astype(np.float32)


def eager(num_envs: int) -> Callable[[], object]:
    """PyTorch, operation by operation."""
    ns = namespace("torch")
    actions, fresh = (torch.from_numpy(array) for array in drawn(num_envs))
    begin = (CartPoleState(*fresh[-1]), torch.zeros(num_envs, dtype=torch.int32))
    _, row = one_step(ns, begin, (actions[0], CartPoleState(*fresh[0])))
    kept = [torch.zeros((STEPS, *part.shape), dtype=part.dtype) for part in row]
    carry = begin

    def batch() -> None:
        nonlocal carry
        with torch.inference_mode():
            for t in range(STEPS):
                carry, row = one_step(ns, carry, (actions[t], CartPoleState(*fresh[t])))
                for place, part in zip(kept, row, strict=True):
                    place[t] = part

    return batch


def compiled(num_envs: int, *, scanned: bool) -> Callable[[], object]:
    """JAX, one call for all steps or one for each."""
    ns = namespace("jax")
    actions, fresh = drawn(num_envs)
    given = jax.device_put((actions, CartPoleState(*np.moveaxis(fresh[:-1], 1, 0))))
    carry = jax.device_put((CartPoleState(*fresh[-1]), np.zeros(num_envs, np.int32)))
    step = jax.jit(lambda carry, now: one_step(ns, carry, now))
    scan = jax.jit(lambda carry, given: jax.lax.scan(step, carry, given))
    rows = [jax.tree.map(lambda array, t=t: array[t], given) for t in range(STEPS)]

    def in_one_call() -> None:
        nonlocal carry
        carry, kept = scan(carry, given)
        jax.block_until_ready(kept)

    def step_by_step() -> None:
        nonlocal carry
        kept = []
        for now in rows:
            carry, row = step(carry, now)
            kept.append(row)
        jax.block_until_ready(kept)

    return in_one_call if scanned else step_by_step


def main() -> int:
    """By number of environments; the bar is the first source's figure, at N = 64."""
    bench = Benchmark("xla_vs_torch", __doc__)

    def rate(batch: Callable[[], object], num_envs: int) -> Rate:
        return repeat(batch, num_envs * STEPS)

    for threads in (1, torch.get_num_threads()):
        torch.set_num_threads(threads)
        for num_envs in (1, 64, 1024, 16384):
            theirs = rate(eager(num_envs), num_envs)
            for scanned, how in ((True, "scanned"), (False, "a call a step")):
                bench.compare(
                    f"N={num_envs}, {how}, torch on {threads}",
                    rate(compiled(num_envs, scanned=scanned), num_envs),
                    theirs,
                    13.4 if scanned and num_envs == 64 else None,
                )
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
