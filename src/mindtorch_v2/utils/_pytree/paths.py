"""Leaves with the keys that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .containers import _key
from .flattening import tree_structure
from .keys import PyTree
from .registry import SUPPORTED_NODES
from .spec import TreeSpec, _up_to


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None,
                           ) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """All leaves with the keys that lead to them, and the shape of the tree.

    >>> [(keystr(path), leaf) for path, leaf in tree_flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths(tree, is_leaf, ())), tree_structure(tree, is_leaf)


def _with_paths(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None,
                path: tuple[Any, ...]) -> Iterable[tuple[tuple[Any, ...], Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _key(tree)
    if kind is None:
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn "
                         "argument to register_pytree_node.")
    for key, child in with_keys(tree)[0]:
        yield from _with_paths(child, is_leaf, (*path, key))


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None,
                          ) -> list[tuple[tuple[Any, ...], Any]]:
    """All leaves with the keys that lead to them."""
    return list(_with_paths(tree, is_leaf, ()))


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
                       is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """`tree_map` whose function is given the keys that lead to a leaf before the leaf itself."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *(_up_to(spec, rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def keystr(kp: tuple[Any, ...]) -> str:
    """The keys that lead to a leaf, as a program would write them."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: tuple[Any, ...]) -> Any:
    """What the keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj
