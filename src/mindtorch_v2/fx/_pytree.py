"""`torch.fx._pytree`: a structure's leaves by the specification of another's."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import TreeSpec, tree_flatten

Flatten = Callable[[Any, TreeSpec], list[Any]]
ExactMatch = Callable[[Any, TreeSpec], bool]
SUPPORTED_NODES: dict[Any, Flatten] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, ExactMatch | None] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Flatten,
                                 flatten_fn_exact_match_spec: ExactMatch | None = None) -> None:
    """Register how to find the parts of a class by a specification, and whether one fits exactly."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a structure, as deep as the specification goes."""
    if spec.is_leaf():
        return [pytree]
    kind = spec.type
    if kind not in SUPPORTED_NODES:
        raise RuntimeError(f"{kind} does not have a flatten_fn_spec associated with it. Register one with "
                           "torch.fx._pytree.register_pytree_flatten_spec.")
    parts = SUPPORTED_NODES[kind](pytree, spec)
    return [leaf for part, inner in zip(parts, spec.children()) for leaf in tree_flatten_spec(part, inner)]


def _by_key(pytree: Any, spec: TreeSpec) -> list[Any]:
    return [pytree[key] for key in spec.context]


def _in_order(pytree: Any, spec: TreeSpec) -> list[Any]:
    return [pytree[i] for i in range(spec.num_children)]


def _as_many(pytree: Any, spec: TreeSpec) -> bool:
    return len(pytree) == spec.num_children


for _kind in (dict, OrderedDict):
    register_pytree_flatten_spec(_kind, _by_key, _as_many)
for _kind in (list, tuple, namedtuple):  # type: ignore[assignment]
    register_pytree_flatten_spec(_kind, _in_order, _as_many)

__all__ = ["SUPPORTED_NODES", "SUPPORTED_NODES_EXACT_MATCH", "register_pytree_flatten_spec", "tree_flatten",
           "tree_flatten_spec"]
