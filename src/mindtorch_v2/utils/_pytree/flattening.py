"""A tree as a flat list of leaves, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .containers import _get_node_type, _key
from .keys import PyTree
from .registry import STANDARD_DICT_TYPES, SUPPORTED_NODES
from .spec import LEAF, TreeSpec, _keys_of


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """All leaves, left to right, and the shape of the tree.

    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, 3)})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten([4, 5, 6], spec)
    {'a': 4, 'b': (5, 6)}
    """
    leaves: list[Any] = []
    spec = _flatten_into(leaves, tree, is_leaf)
    return leaves, spec


def _flatten_into(leaves: list[Any], node: PyTree, is_leaf: Callable[[PyTree], bool] | None) -> TreeSpec:
    """Append the leaves and return the shape. A function inside another that calls itself is a reference cycle, which
    would keep the leaves alive until the garbage collector runs."""
    kind = None if is_leaf is not None and is_leaf(node) else _key(node)
    if kind is None:
        leaves.append(node)
        return LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(node)
    return TreeSpec(kind, context, [_flatten_into(leaves, child, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a shape with the given leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """All leaves, left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """All leaves, left to right, one by one."""
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        yield tree
        return
    for child in SUPPORTED_NODES[kind].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """All leaves of a call's arguments."""
    return [leaf for one in (*args, *kwargs.values()) for leaf in tree_leaves(one)]


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec,
                              is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any] | None:
    """The leaves of a tree, each as often as the shape has leaves below it; None if they do not fit.

    Those of dictionaries come in the order of the tree's keys, as in PyTorch.
    """
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        return [tree] * treespec.num_leaves
    pairs = _matched(tree, kind, treespec)
    if pairs is None:
        return None
    found: list[Any] = []
    for child, spec in pairs:
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def _matched(tree: PyTree, kind: Any, treespec: TreeSpec) -> list[tuple[Any, TreeSpec]] | None:
    """A container's children, in its own order, each with the shape to spread it to; None if they do not fit."""
    if kind in STANDARD_DICT_TYPES and treespec.type in STANDARD_DICT_TYPES:
        below = dict(zip(_keys_of(treespec), treespec._children, strict=True))
        return [(tree[key], below[key]) for key in tree] if below.keys() == tree.keys() else None
    if kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or (kind is not deque and context != treespec._context):
        return None
    return list(zip(children, treespec._children, strict=True))
