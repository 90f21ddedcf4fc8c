"""`torch._library.utils`: questions about signatures of ops."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from .._tensor import Tensor
from .schema import parse

__all__ = ["has_kwarg_only_args", "has_kwarg_only_tensors", "is_builtin", "is_functional_schema", "iter_tensors",
           "lookup_op", "mutates_and_returns_first_arg", "parse_namespace", "zip_schema"]


def lookup_op(qualname: str) -> Any:
    """The overload that `ns::name` or `ns::name.overload` names."""
    namespace, name = parse_namespace(qualname)
    packet, _, overload = name.partition(".")
    ops = importlib.import_module(f"{__name__.partition('.')[0]}.ops")
    return getattr(getattr(ops.namespace(namespace), packet), overload or "default")


def is_builtin(op: Any) -> bool:
    """Whether an op is of the table, not a program's own."""
    return op.namespace in ("aten", "prim", "prims")


def parse_namespace(qualname: str) -> tuple[str, str]:
    """`ns::name` in its two parts."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(f"Expected `qualname` to be of the form \"namespace::name\", but got {qualname}. The qualname "
                         "passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin")
    return parts[0], parts[1]


def is_functional_schema(schema: Any) -> bool:
    """Whether an op changes nothing, returns something, and nothing of it is a view of an argument."""
    if isinstance(schema, str):
        schema = parse(*parse_namespace(schema))
    return bool(schema.returns) and not schema.is_mutable and all(one.alias_info is None for one in schema.returns)


def mutates_and_returns_first_arg(op: Any) -> bool:
    """Whether an op of `aten` changes its first argument alone, and returns it, as `add_` does."""
    if op.namespace != "aten":
        return False
    schema = op._schema
    if len(schema.returns) != 1 or schema.returns[0].alias_info is None or not schema.arguments:
        return False
    marks, first = schema.returns[0].alias_info.before_set, schema.arguments[0].alias_info
    if len(marks) != 1 or first is None or not first.is_write or first.before_set != marks:
        return False
    return all(one.alias_info is None for one in schema.arguments[1:])


def zip_schema(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[tuple[Any, Any]]:
    """Arguments of a signature with the values of a call, as far as they were given."""
    for place, argument in enumerate(schema.arguments):
        if argument.kwarg_only or place >= len(args):
            if argument.name in kwargs:
                yield argument, kwargs[argument.name]
        else:
            yield argument, args[place]


def has_kwarg_only_args(schema: Any) -> bool:
    """Whether some arguments are given by name alone."""
    return any(one.kwarg_only for one in schema.arguments)


def has_kwarg_only_tensors(schema: Any) -> bool:
    """Whether some of these are tensors, or lists of them."""
    return any(one.kwarg_only and one.is_tensor for one in schema.arguments)


def iter_tensors(args: tuple[Any, ...], kwargs: dict[str, Any], allowed_nesting: int = 1) -> Iterator[Any]:
    """The tensors among the arguments of a call, also in lists."""
    for one in (*args, *kwargs.values()):
        if isinstance(one, Tensor):
            yield one
        elif allowed_nesting > 0 and isinstance(one, (tuple, list)):
            yield from iter_tensors(tuple(one), {}, allowed_nesting - 1)
