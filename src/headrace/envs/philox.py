# SPDX-License-Identifier: Apache-2.0
"""Randomness that depends on nothing but what it is for: native/core/rng.hpp, over arrays.

Philox4x32-10 (Salmon et al., SC 2011): four words are a pure function of the key, a 64-bit seed,
and the counter (environment index, low, high, stream). The streams and the maps from words to
values are those of the native core, bit for bit, and are written down there; `POLICY` is the
arrays' alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np

from headrace import _native
from headrace.envs.array.namespace import Array, Namespace
from headrace.errors import HeadraceError

RESET, ACTION, POLICY = 0, 1, 2
"""Streams. POLICY: high = the environment's step, low = block within the step."""


class Identity(NamedTuple):
    """Who environments are: all that their randomness hangs on, one word each."""

    index: Array
    seed_low: Array
    seed_high: Array


def identify(ns: Namespace, num_envs: int, seed: int, first_env: int = 0) -> Identity:
    """Environments `first_env` and following of a job with this seed."""
    index = np.arange(first_env, first_env + num_envs, dtype=np.uint32)
    low = np.full(num_envs, seed & 0xFFFFFFFF, np.uint32)
    high = np.full(num_envs, seed >> 32, np.uint32)
    return Identity(*(_to_words(ns, words) for words in (index, low, high)))


def _to_words(ns: Namespace, words: np.ndarray) -> Array:
    return ns.xp.asarray(words.view(np.int32) if ns.name == "torch" else words)


def philox(
    ns: Namespace, counter: tuple[Array, ...], key: tuple[Array, Array]
) -> tuple[Array, ...]:
    """Four words for every four words of counter and two of key; shapes broadcast."""
    first, second, bump0, bump1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
    words = tuple(ns.xp.broadcast_arrays(*counter, *key))

    def one_round(_: Any, words: tuple[Array, ...]) -> tuple[Array, ...]:
        c0, c1, c2, c3, k0, k1 = words
        high0, low0 = ns.multiply_wide(c0, first)
        high1, low1 = ns.multiply_wide(c2, second)
        bumped = (k0 + ns.constant(bump0), k1 + ns.constant(bump1))
        return (high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0, *bumped)

    return ns.repeat(10, one_round, words)[:4]


def block(ns: Namespace, who: Identity, low: Array, high: Array, stream: int) -> tuple[Array, ...]:
    """The four words of one block, for each environment."""
    zero = who.index ^ who.index  # zero, of the shape and the kind of the words
    counter = (who.index, zero + low, zero + high, zero + ns.constant(stream))
    return philox(ns, counter, (who.seed_low, who.seed_high))


def unit_interval(ns: Namespace, word: Array) -> Array:
    """A word as a float32 in [0, 1): its highest 24 bits."""
    return ns.to_float(ns.shift_right(word, 8)) * np.float32(2.0**-24)


class ResetDraws:
    """The draws of one reset, in order."""

    def __init__(self, ns: Namespace, who: Identity, episode: Array):
        self._ns, self._who, self._episode = ns, who, episode
        self._block: tuple[Array, ...] = ()
        self._used = 0

    def word(self) -> Array:
        """The next 32 bits, for each environment."""
        if self._used % 4 == 0:
            low = self._ns.constant(self._used // 4)
            self._block = block(self._ns, self._who, low, self._episode, RESET)
        self._used += 1
        return self._block[(self._used - 1) % 4]

    def words(self, count: int) -> Array:
        """The first `count` words, a multiple of four, on a trailing axis."""
        assert self._used == 0
        assert count % 4 == 0
        self._used = count
        ns, xp = self._ns, self._ns.xp
        who = Identity(*(part[..., None] for part in self._who))
        low = ns.words(xp.arange(count // 4))
        four = block(ns, who, low, self._episode[..., None], RESET)
        stacked = xp.stack(four, axis=-1)
        return stacked.reshape((*stacked.shape[:-2], count))

    def uniform(self, low: float, high: float) -> Array:
        """A float32 in [low, high)."""
        width = np.float32(np.float32(high) - np.float32(low))
        return np.float32(low) + width * unit_interval(self._ns, self.word())


class ActionBlocks(NamedTuple):
    """The blocks of the action stream that some steps need, whenever those begin."""

    low: Array
    """[blocks] words; with `high` the blocks' numbers."""
    high: Array
    draw: Array
    """The first draw of the first step, counted from the start of the first block: one integer."""


def action_blocks(space: gymnasium.Space, clock: int, steps: int) -> ActionBlocks:
    """The blocks for the steps from `clock` on, as NumPy arrays.

    Their shapes depend on `steps` alone: a compiled program that takes them serves every clock.
    """
    return _blocks(_draw_bits(space), _components(space), clock, steps)


def legal_blocks(clock: int, steps: int) -> ActionBlocks:
    """The same where actions are chosen among the legal ones: a word for each."""
    return _blocks(32, 1, clock, steps)


def _blocks(bits: int, components: int, clock: int, steps: int) -> ActionBlocks:
    per_block = 128 // bits
    first, draw = divmod(clock * components, per_block)
    count = (steps * components + per_block - 2) // per_block + 1
    numbers = [first + number for number in range(count)]
    low = np.array([number & 0xFFFFFFFF for number in numbers], np.uint32)
    high = np.array([number >> 32 & 0xFFFFFFFF for number in numbers], np.uint32)
    return ActionBlocks(low, high, np.array(draw, np.int32))


def action_words(ns: Namespace, who: Identity, blocks: ActionBlocks) -> Array:
    """The words of the blocks, one after the other: [words, num_envs]."""
    low, high = blocks.low[:, None], blocks.high[:, None]
    # Many blocks a call where environments are few, but no more than stay in the cache.
    at_once = max(1, ns.chunk // who.index.shape[0])
    parts = []
    for first in range(0, low.shape[0], at_once):
        rows = slice(first, first + at_once)
        four = block(ns, who, low[rows], high[rows], ACTION)
        words = ns.xp.stack(four, axis=1)  # [blocks, 4, num_envs]
        parts.append(words.reshape((-1, words.shape[-1])))
    return ns.xp.concat(parts, axis=0)


def action_at(ns: Namespace, space: gymnasium.Space, words: Array, draw: Array) -> Array:
    """Actions [..., num_envs, ...] of steps whose first draws are `draw[...]` of `words`."""
    if isinstance(space, gymnasium.spaces.Discrete):
        bits = _draw_bits(space)
        chosen = words[draw * bits // 32]
        if bits == 32:
            return ns.multiply_wide(chosen, int(space.n))[0]
        return (chosen >> ns.words(draw * bits % 32)[..., None]) & ((1 << bits) - 1)
    assert isinstance(space, gymnasium.spaces.Box)
    components = [words[draw + c] for c in range(_components(space))]
    unit = unit_interval(ns, ns.xp.stack(components, axis=-1))
    low = ns.xp.asarray(space.low.astype(np.float32).reshape(-1))
    high = ns.xp.asarray(space.high.astype(np.float32).reshape(-1))
    return (low + (high - low) * unit).reshape((*unit.shape[:-1], *space.shape))


def random_actions(
    ns: Namespace, space: gymnasium.Space, who: Identity, clock: int, steps: int
) -> Array:
    """Uniform random actions [steps, num_envs, ...] for the steps from `clock` on.

    The very ones that the native kernels draw. Discrete ones are words; the caller narrows them.
    """
    blocks = action_blocks(space, clock, steps)
    low, high = _to_words(ns, blocks.low), _to_words(ns, blocks.high)
    words = action_words(ns, who, ActionBlocks(low, high, blocks.draw))
    draws = blocks.draw + np.arange(steps) * _components(space)
    return action_at(ns, space, words, ns.xp.asarray(draws))


def legal_words(ns: Namespace, who: Identity, clock: int, steps: int) -> Array:
    """The words [steps, num_envs] that choose among legal actions, from step `clock` on."""
    blocks = legal_blocks(clock, steps)
    low, high = _to_words(ns, blocks.low), _to_words(ns, blocks.high)
    words = action_words(ns, who, ActionBlocks(low, high, blocks.draw))
    return words[int(blocks.draw) : int(blocks.draw) + steps]


_NTH_BIT = np.array(
    [
        [([b for b in range(8) if byte >> b & 1] + [0] * 8)[n] for n in range(8)]
        for byte in range(256)
    ],
    np.int32,
)
"""[byte, n]: which of a byte's bits is the n-th that is set."""


def random_legal(ns: Namespace, words: Array, mask: Array) -> Array:
    """Uniform random legal actions [N], for words [N] and masks [N, bytes] (0 where none is legal).

    The n-th legal action, from the smallest, where n is the word's share of their number: the very
    one that the native kernels choose. For NumPy and JAX.
    """
    xp = ns.xp
    upto = xp.cumulative_sum(xp.bitwise_count(mask).astype(xp.uint32), axis=-1)
    count = upto[:, -1]
    half = np.uint32(16)
    n = ((words >> half) * count + ((words & np.uint32(0xFFFF)) * count >> half)) >> half
    at = xp.minimum((upto <= n[:, None]).sum(axis=-1), mask.shape[1] - 1)
    byte = xp.take_along_axis(mask, at[:, None], axis=1)[:, 0]
    before = xp.take_along_axis(upto, at[:, None], axis=1)[:, 0] - xp.bitwise_count(byte)
    return (8 * at + xp.asarray(_NTH_BIT)[byte, (n - before) % 8]) * (count > 0)


def _draw_bits(space: gymnasium.Space) -> int:
    """How many bits of a block one draw takes."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return {2: 1, 4: 2, 16: 4, 256: 8}.get(int(space.n), 32)
    if isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
        return 32
    raise HeadraceError(f"no random policy for the action space {space}; give a policy")


def _components(space: gymnasium.Space) -> int:
    return int(np.prod(space.shape or ()))


def policy_uniforms(ns: Namespace, key: Any, count: int) -> list[Array]:
    """`count` float32 arrays in [0, 1) for one step of a policy; `key` is a `PolicyKey`."""
    if ns.name == "numpy" and key.who.index.ndim == 1 and np.ndim(key.step) == 0:
        # For a few environments a call of the native generator costs a hundredth of the arrays'.
        drawn = np.empty((count, len(key.who.index)), np.float32)
        _native.policy_uniforms(*key.who, int(key.step), POLICY, drawn)
        return list(drawn)
    out: list[Array] = []
    for number in range((count + 3) // 4):
        words = block(ns, key.who, ns.constant(number), key.step, POLICY)
        out += [unit_interval(ns, word) for word in words]
    return out[:count]
