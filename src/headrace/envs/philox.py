# SPDX-License-Identifier: Apache-2.0
"""Randomness that depends on nothing but what it is for: native/core/rng.hpp, over arrays.

Philox4x32-10 (Salmon et al., SC 2011): four words are a pure function of the key, a 64-bit seed, and
the counter (environment index, low, high, stream). The streams and the maps from words to values are
those of the native core, bit for bit, and are written down there; `POLICY` is the arrays' alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np

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
    if ns.name == "torch":
        index, low, high = (words.view(np.int32) for words in (index, low, high))
    return Identity(*(ns.xp.asarray(words) for words in (index, low, high)))


def philox(ns: Namespace, counter: tuple[Array, ...], key: tuple[Array, Array]) -> tuple[Array, ...]:
    """Four words for every four words of counter and two of key; shapes broadcast."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = ns.multiply_wide(c0, 0xD2511F53)
        high1, low1 = ns.multiply_wide(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = k0 + ns.constant(0x9E3779B9)
        k1 = k1 + ns.constant(0xBB67AE85)
    return c0, c1, c2, c3


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
        """The next `count` words (a multiple of four, and nothing drawn before), on a trailing axis."""
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


def random_actions(
    ns: Namespace, space: gymnasium.Space, who: Identity, clock: int, steps: int
) -> Array:
    """Uniform random actions [steps, num_envs, ...] for the steps from `clock` on.

    The very ones that the native kernels draw. Discrete ones are words; the caller narrows them.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        return _random_choices(ns, int(space.n), who, clock, steps)
    if isinstance(space, gymnasium.spaces.Box) and space.is_bounded():
        return _random_components(ns, space, who, clock, steps)
    raise HeadraceError(f"no random policy for the action space {space}; give a policy")


def _random_choices(ns: Namespace, n: int, who: Identity, clock: int, steps: int) -> Array:
    width = {2: 1, 4: 2, 16: 4, 256: 8}.get(n, 0)
    if width == 0:
        words = _action_words(ns, who, clock, steps)
        return ns.multiply_wide(words, n)[0]
    per_block = 128 // width
    first = clock // per_block
    count = (clock + steps - 1) // per_block - first + 1
    xp = ns.xp
    fields = []
    for number in range(first, first + count):
        begin = max(clock - number * per_block, 0)
        end = min(clock + steps - number * per_block, per_block)
        for word, bits in enumerate(_action_block(ns, who, number)):
            places = range(max(begin * width, word * 32), min(end * width, word * 32 + 32), width)
            if places:
                shifts = xp.asarray(
                    np.array([place % 32 for place in places], np.int32), dtype=ns.word
                )
                fields.append((bits[None] >> shifts[:, None]) & ((1 << width) - 1))
    return xp.concat(fields, axis=0)


def _random_components(
    ns: Namespace, space: gymnasium.spaces.Box, who: Identity, clock: int, steps: int
) -> Array:
    size = int(np.prod(space.shape))
    words = _action_words(ns, who, clock * size, steps * size)  # [steps * size, num_envs]
    low = ns.xp.asarray(space.low.astype(np.float32).reshape(-1))
    high = ns.xp.asarray(space.high.astype(np.float32).reshape(-1))
    unit = unit_interval(ns, words).reshape((steps, size, words.shape[1]))
    values = low + (high - low) * ns.xp.permute_dims(unit, (0, 2, 1))
    return values.reshape((steps, words.shape[1], *space.shape))


def _action_words(ns: Namespace, who: Identity, first_draw: int, draws: int) -> Array:
    """A word for each draw: [draws, num_envs]."""
    begin, end = first_draw // 4, (first_draw + draws - 1) // 4
    blocks = [ns.xp.stack(_action_block(ns, who, number)) for number in range(begin, end + 1)]
    words = ns.xp.concat(blocks, axis=0)
    offset = first_draw - begin * 4
    return words[offset : offset + draws]


def _action_block(ns: Namespace, who: Identity, number: int) -> tuple[Array, ...]:
    low, high = ns.constant(number & 0xFFFFFFFF), ns.constant(number >> 32)
    return block(ns, who, low, high, ACTION)


def policy_uniforms(ns: Namespace, key: Any, count: int) -> list[Array]:
    """`count` float32 arrays in [0, 1) for one step of a policy; `key` is a `PolicyKey`."""
    out: list[Array] = []
    for number in range((count + 3) // 4):
        words = block(ns, key.who, ns.constant(number), key.step, POLICY)
        out += [unit_interval(ns, word) for word in words]
    return out[:count]
