"""Python's own containers, and which container something is."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any

from ..._ops.return_types import NamedResult
from ..._shape import Size
from .keys import GetAttrKey, MappingKey, SequenceKey
from .kinds import is_namedtuple_class
from .registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    _put_node,
    register_pytree_node,
)


def _key(tree: Any) -> Any:
    """The key of the tree's container type, None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if not isinstance(tree, tuple):
        return None
    if isinstance(tree, NamedResult):  # such classes are made when an op first needs them
        register_pytree_node(kind, _list_flatten, lambda items, _: kind(items),
                             flatten_with_keys_fn=_list_flatten_with_keys)
        return kind
    return namedtuple if is_namedtuple_class(kind) else None


def _get_node_type(tree: Any) -> Any:
    """The type that decides how a tree is taken apart; of a leaf, its own."""
    key = _key(tree)
    return type(tree) if key is None else key


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(place), value) for place, value in enumerate(d)], None


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)], type(d)


def _defaultdict_serialize(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__,
            "dict_context": keys}


def _defaultdict_deserialize(plain: Any) -> list[Any]:
    module = importlib.import_module(plain["default_factory_module"])
    return [getattr(module, plain["default_factory_name"]), plain["dict_context"]]


def _namedtuple_serialize(context: Any) -> str:
    if context not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register "
                                  "a serializated_type_name. Please register using `_register_namedtuple`.")
    name = SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name
    if name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we couldn't find a "
                                  "serializated_type_name. Please register using `_register_namedtuple`.")
    return name


def _namedtuple_deserialize(plain: Any) -> Any:
    if plain not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {plain} because we couldn't find a "
                                  "serializated name.")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[plain]


register_pytree_node(tuple, _list_flatten, lambda items, _: tuple(items), serialized_type_name="builtins.tuple",
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(list, _list_flatten, _list_unflatten, serialized_type_name="builtins.list",
                     flatten_with_keys_fn=_list_flatten_with_keys)
register_pytree_node(dict, _dict_flatten, _dict_unflatten, serialized_type_name="builtins.dict",
                     flatten_with_keys_fn=_dict_flatten_with_keys)
_put_node(namedtuple, lambda t: (list(t), type(t)), lambda items, kind: kind(*items), "collections.namedtuple",
          _namedtuple_serialize, _namedtuple_deserialize, _namedtuple_flatten_with_keys)
register_pytree_node(OrderedDict, _dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True)),
                     serialized_type_name="collections.OrderedDict", flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
                     lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
                     serialized_type_name="collections.defaultdict", to_dumpable_context=_defaultdict_serialize,
                     from_dumpable_context=_defaultdict_deserialize,
                     flatten_with_keys_fn=_defaultdict_flatten_with_keys)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda items, maxlen: deque(items, maxlen),
                     serialized_type_name="collections.deque",
                     flatten_with_keys_fn=lambda d: (_list_flatten_with_keys(d)[0], d.maxlen))
# (They become a plain tuple, as in PyTorch: a function of the numbers may have made something else of them.)
register_pytree_node(Size, _list_flatten, lambda items, _: tuple(items), serialized_type_name="torch.Size",
                     flatten_with_keys_fn=_list_flatten_with_keys)
