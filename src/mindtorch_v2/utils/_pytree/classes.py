"""Classes of a program as containers of their fields, or as constants."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .keys import GetAttrKey
from .registry import CONSTANT_NODES, register_pytree_node


def register_dataclass(cls: type[Any], *, field_names: list[str] | None = None,
                       drop_field_names: list[str] | None = None, serialized_type_name: str | None = None) -> None:
    """Treat instances of a data class as containers of their fields."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError("field_names must be specified with a list of all fields used to initialize the class, as "
                             f"{cls} is not a dataclass")
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    elif dataclasses.is_dataclass(cls):
        known = {field.name for field in dataclasses.fields(cls) if field.init}
        said = {*field_names, *(drop_field_names or ())}
        for what, wrong in (("Missing", known - said), ("Unexpected", said - known)):
            if wrong:
                raise ValueError(f"field_names does not include all dataclass fields.\n{what} fields in `field_names`: "
                                 f"{wrong}. A field stands there or in `drop_field_names`.")
    names = [name for name in field_names if name not in (drop_field_names or ())]

    def flatten_with_keys(one: Any) -> tuple[list[tuple[Any, Any]], Any]:
        present = [name for name in names if getattr(one, name) is not None]
        absent = [name for name in names if getattr(one, name) is None]
        return [(GetAttrKey(name), getattr(one, name)) for name in present], [present, absent]

    def flatten(one: Any) -> tuple[list[Any], Any]:
        pairs, context = flatten_with_keys(one)
        return [value for _, value in pairs], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


@dataclass(frozen=True)
class ConstantNode:
    """A constant as part of a tree's shape: equal if the constants are."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Treat instances of a class as parts of a tree's shape, not as leaves."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is object.__hash__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda one: ([], ConstantNode(one)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda one: ([], ConstantNode(one)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether `register_constant` was called for a class."""
    return cls in CONSTANT_NODES
