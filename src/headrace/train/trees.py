# SPDX-License-Identifier: Apache-2.0
"""Pytrees of arrays by name, without JAX: for files, which know names and arrays only.

A tree is made of dicts, lists, tuples and named tuples. `named` lists its leaves as
`{"params/layers/0/weight": array}`; `filled` puts arrays of these names into a tree of the same
structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headrace.errors import HeadraceError

Tree = Any


def named(tree: Tree) -> dict[str, Any]:
    """Its leaves, by where they are."""
    return dict(_walk(tree, ""))


def mapped(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """The tree with what the function makes of each leaf: `jax.tree.map`, without JAX."""
    return _replaced(tree, "", {name: function(leaf) for name, leaf in _walk(tree, "")})


def filled(tree: Tree, arrays: dict[str, np.ndarray]) -> Tree:
    """The tree with other arrays, which must have the names, shapes and dtypes of its own."""
    leaves = named(tree)
    for name in sorted({*leaves, *arrays}):
        if name not in arrays or name not in leaves:
            where = "is missing" if name not in arrays else "is not known here"
            raise HeadraceError(f"'{name}' {where}")
        ours, theirs = _kind(leaves[name]), _kind(arrays[name])
        if ours != theirs:
            raise HeadraceError(f"'{name}' is {theirs}; here it is {ours}")
    return _replaced(tree, "", arrays)


def _children(tree: Tree) -> list[tuple[str, Any]] | None:
    """By name; None for a leaf."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [(str(key), value) for key, value in tree.items()]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(zip(tree._fields, tree, strict=True))  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(tree, list | tuple):
        return [(str(number), value) for number, value in enumerate(tree)]
    return None


def _walk(tree: Tree, prefix: str) -> Iterator[tuple[str, Any]]:
    children = _children(tree)
    if children is None:
        yield prefix, tree
        return
    for name, child in children:
        yield from _walk(child, _join(prefix, name))


def _replaced(tree: Tree, prefix: str, arrays: dict[str, np.ndarray]) -> Tree:
    children = _children(tree)
    if children is None:
        return arrays[prefix]
    if tree is None:
        return None
    parts = [_replaced(child, _join(prefix, name), arrays) for name, child in children]
    if isinstance(tree, dict):
        return dict(zip(tree, parts, strict=True))
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix else name


def _kind(array: Any) -> str:
    return f"{np.dtype(array.dtype)}{list(np.shape(array))}"
