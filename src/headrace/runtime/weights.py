# SPDX-License-Identifier: Apache-2.0
"""The newest acting parameters in shared memory: one flat float32 vector, double-buffered.

Concurrency: `native/channels/weights.hpp` states the contract, with the argument for its memory
order. In short: one process publishes; readers never block it, nor see a torn vector; each reader
copies into memory of its own, of which its tree of parameters is a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import _native, aligned
from headrace.errors import HeadraceError
from headrace.runtime.shared import SharedMemory
from headrace.train import trees

Tree = Any


class FlatTree:
    """A tree of float32 arrays and the vector that they lie in, one after another."""

    def __init__(self, example: Tree):
        leaves = trees.named(example)
        for name, leaf in leaves.items():
            if leaf.dtype != np.float32:
                raise HeadraceError(f"parameter {name} is {leaf.dtype}; it must be float32")
        sizes = {name: int(np.prod(leaf.shape, dtype=np.int64)) for name, leaf in leaves.items()}
        self.vector = aligned.zeros(sum(sizes.values()), np.float32)
        views, at = {}, 0
        for name, leaf in leaves.items():
            views[name] = self.vector[at : at + sizes[name]].reshape(leaf.shape)
            views[name][...] = leaf
            at += sizes[name]
        self.tree: Tree = trees.filled(example, views)

    def fill(self, tree: Tree) -> np.ndarray:
        """Take the values of another tree of this kind; returns the vector."""
        for ours, theirs in zip(
            trees.named(self.tree).values(), trees.named(tree).values(), strict=True
        ):
            ours[...] = theirs
        return self.vector


class SharedWeights:
    """The channel; `example` is a tree of the shapes that all will have."""

    def __init__(self, memory: SharedMemory, example: Tree):
        self._example = example
        self.count = FlatTree(example).vector.size
        size = _native.Weights.memory_bytes(self.count)
        self._weights = _native.Weights(memory.part(size, "the parameters"), self.count)

    @property
    def version(self) -> int:
        """The newest; 0 where nothing was published."""
        return self._weights.version

    def publish(self, vector: np.ndarray) -> int:
        """Make this the newest; for the one writer. Returns its version."""
        return self._weights.publish(vector)

    def reader(self) -> WeightReader:
        """One for each process that acts."""
        return WeightReader(self._weights, FlatTree(self._example))


class WeightReader:
    """A copy of the newest parameters, brought up to date when asked to."""

    def __init__(self, weights: _native.Weights, flat: FlatTree):
        self._weights, self._flat = weights, flat
        self.version = 0

    @property
    def params(self) -> Tree:
        """The tree, whose arrays change with `refresh`."""
        return self._flat.tree

    @property
    def vector(self) -> np.ndarray:
        """The same, flat."""
        return self._flat.vector

    def refresh(self) -> bool:
        """Copy the newest, if it is another than ours; returns whether it was."""
        if self._weights.version == self.version:
            return False
        self.version = self._weights.read(self._flat.vector)
        return True
