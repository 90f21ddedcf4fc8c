"""The types of containers, and how each is taken apart, put together and written."""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from .keys import FlattenFn, FlattenWithKeysFn, FromDumpableContextFn, ToDumpableContextFn, UnflattenFn


class NodeDef(NamedTuple):
    """How one type of container is taken apart and put together."""

    type: type[Any]
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None = None


class _SerializeNodeDef(NamedTuple):
    """How a type of container is written in a text."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"  # stands for a name, so that it can be compared
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type[Any]] = set()
# `namedtuple` stands for all named tuples, which have no common base class.
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})


def register_pytree_node(cls: type[Any], flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
                         serialized_type_name: str | None = None,
                         to_dumpable_context: ToDumpableContextFn | None = None,
                         from_dumpable_context: FromDumpableContextFn | None = None,
                         flatten_with_keys_fn: FlattenWithKeysFn | None = None) -> None:
    """Treat instances of a class as containers. With a name, their shape can be written by `treespec_dumps`."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _put_node(cls, flatten_fn, unflatten_fn, serialized_type_name, to_dumpable_context, from_dumpable_context,
              flatten_with_keys_fn)


def _register_pytree_node(cls: type[Any], flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
                          serialized_type_name: str | None = None,
                          to_dumpable_context: ToDumpableContextFn | None = None,
                          from_dumpable_context: FromDumpableContextFn | None = None,
                          flatten_with_keys_fn: FlattenWithKeysFn | None = None) -> None:
    """The old form: it replaces what was registered."""
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
                  "`torch.utils._pytree.register_pytree_node`, which takes the same arguments.", FutureWarning,
                  stacklevel=2)
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.",
                      stacklevel=2)
    _put_node(cls, flatten_fn, unflatten_fn, serialized_type_name, to_dumpable_context, from_dumpable_context,
              flatten_with_keys_fn)


def _put_node(cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, name: str | None,
              to_dumpable: ToDumpableContextFn | None, from_dumpable: FromDumpableContextFn | None,
              flatten_with_keys_fn: FlattenWithKeysFn | None) -> None:
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = NO_SERIALIZED_TYPE_NAME_FOUND if name is None else name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable, from_dumpable)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Treat instances of a class as leaves again."""
    del SUPPORTED_NODES[cls]
    written = SUPPORTED_SERIALIZED_TYPES.pop(cls)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(written.serialized_type_name, None)
    CONSTANT_NODES.discard(cls)
