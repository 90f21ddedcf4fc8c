"""The shape of a tree."""

from __future__ import annotations

import warnings
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .containers import _key
from .keys import PyTree
from .registry import STANDARD_DICT_TYPES, SUPPORTED_NODES


@dataclass(init=False, frozen=True, eq=False, repr=False)
class TreeSpec:
    """The shape of a tree: container type, what is needed to rebuild it, and the shapes of its children."""

    type: Any
    _context: Any
    _children: list[TreeSpec]
    num_nodes: int
    num_leaves: int
    num_children: int

    def __init__(self, kind: Any, context: Any = None, children: Iterable[TreeSpec] = ()) -> None:
        children = list(children)
        vars(self).update(type=kind, _context=context, _children=children, num_children=len(children),
                          num_nodes=1 + sum(child.num_nodes for child in children),
                          num_leaves=1 if kind is None else sum(child.num_leaves for child in children))

    @property
    def context(self) -> Any:
        """What is needed to rebuild the container, besides its children."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The shapes of the children, under their old name."""
        warnings.warn("`treespec.children_specs` is deprecated: `treespec.children()` has all children, and "
                      "`treespec.child(index)` one", FutureWarning, stacklevel=2)
        return self._children

    def children(self) -> list[TreeSpec]:
        """The shapes of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The shape of one child."""
        return self._children[index]

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` at the places where a tree of this shape has its leaves."""
        return _up_to(self, tree)

    def is_leaf(self) -> bool:
        """Whether this is a single leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """A tree of this shape with the given leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a "
                             f"pytree that holds {self.num_leaves} items ({self}).")
        return self._build(iter(leaves))

    def _build(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TreeSpec) and self.type is other.type and self.context == other.context
                and self._children == other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, tuple(map(hash, self._children))))

    def __repr__(self) -> str:
        return self._shown(0)

    def _shown(self, indent: int) -> str:
        if self.type is None:
            return "*"
        children = f",\n{' ' * (indent + 2)}".join(child._shown(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


PyTreeSpec = TreeSpec  # PyTorch has a second kind, of optree
LEAF = LeafSpec()


def _check_keys(expected: list[Any], found: Any) -> None:
    """Refuse a dictionary with other keys."""
    missing, extra = set(expected).difference(found), set(found).difference(expected)
    if not missing and not extra:
        return
    said = [f"{what} key(s): {keys}" for what, keys in (("missing", missing), ("extra", extra)) if keys]
    raise ValueError(f"Node keys mismatch; {'; '.join(said)}.")


def _keys_of(spec: TreeSpec) -> list[Any]:
    """The keys of a dictionary's shape, in the order of its children."""
    return spec._context[1] if spec.type is defaultdict else spec._context


def _children_like(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The children of a container that has to have this shape; dictionaries may be of another kind and order."""
    kind = _key(tree)
    if kind in STANDARD_DICT_TYPES and spec.type in STANDARD_DICT_TYPES:
        keys = _keys_of(spec)
        _check_keys(keys, tree)
        return [tree[key] for key in keys]
    if kind is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got "
                         f"{(type(tree) if kind is None else kind)!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if kind is not deque and context != spec._context:  # two deques may have different maximal lengths
        raise ValueError(f"Node context mismatch for custom node type {kind!r}; expected {spec._context!r}, but got "
                         f"{context!r}.")
    return children


def _up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The parts of `tree` at the places where a tree of the given shape has its leaves."""
    if spec.is_leaf():
        return [tree]
    return [part for child_spec, child in zip(spec._children, _children_like(spec, tree), strict=True)
            for part in _up_to(child_spec, child)]


def treespec_leaf() -> LeafSpec:
    """The shape of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple whose items have these shapes."""
    children = list(iterable)
    if not all(isinstance(one, TreeSpec) for one in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The shape of a dictionary whose values have these shapes."""
    made = dict(mapping, **kwargs)
    if not all(isinstance(one, TreeSpec) for one in made.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {made!r}.")
    return TreeSpec(dict, list(made), list(made.values()))
