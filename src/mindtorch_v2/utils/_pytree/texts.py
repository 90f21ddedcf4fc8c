"""The shape of a tree as a text."""

from __future__ import annotations

import importlib
import json
from enum import Enum
from typing import Any, NoReturn

from .flattening import tree_unflatten
from .registry import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    _SerializeNodeDef,
)
from .spec import LEAF, TreeSpec

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1  # the only one that PyTorch has had so far


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by name."""

    def default(self, obj: object) -> Any:
        """What stands for an object that JSON does not know."""
        if isinstance(obj, Enum):
            return {"__enum__": True, "fqn": f"{type(obj).__module__}:{type(obj).__qualname__}", "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member of an enumeration that `EnumEncoder` wrote; any other dictionary unchanged."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class that `namedtuple` made a name by which `treespec_dumps` writes it."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _plain_context(written: _SerializeNodeDef, context: Any) -> Any:
    if written.to_dumpable_context is not None:
        return written.to_dumpable_context(context)
    try:
        return json.dumps(context, cls=EnumEncoder)
    except TypeError as error:
        raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom "
                        "serializer using _register_pytree_node.") from error


def _spec_as_dict(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if written is None or written.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    return {"type": written.serialized_type_name, "context": _plain_context(written, spec.context),
            "children_spec": [_spec_as_dict(child) for child in spec._children]}


def _spec_from_dict(text: dict[str, Any]) -> TreeSpec:
    if text["type"] is None and text["context"] is None and not text["children_spec"]:
        return LEAF
    if text["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {text['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[text["type"]]
    from_dumpable = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    context = (json.loads(text["context"], object_hook=enum_object_hook) if from_dumpable is None
               else from_dumpable(text["context"]))
    return TreeSpec(kind, context, [_spec_from_dict(one) for one in text["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The shape of a tree as a text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("Expected `treespec` to be an instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    if protocol not in (None, DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL):
        _refuse_protocol(protocol)
    return json.dumps((DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL, _spec_as_dict(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The shape of a tree from the text that `treespec_dumps` made."""
    protocol, text = json.loads(serialized, object_hook=enum_object_hook)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        _refuse_protocol(protocol)
    return _spec_from_dict(text)


def _refuse_protocol(protocol: Any) -> NoReturn:
    raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]}")


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape of a tree, with `*` for its leaves."""
    leaf = _Asterisk()
    return repr(tree_unflatten([leaf] * treespec.num_leaves, treespec))
