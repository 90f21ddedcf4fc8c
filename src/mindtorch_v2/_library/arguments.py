"""Brings the arguments of a call into the order and types of an op's signature, or says what is wrong with them."""

from __future__ import annotations

from numbers import Number
from typing import Any

from .._device import as_device, device
from .._dtype import dtype
from .._tensor import Tensor
from .schema import Argument, FunctionSchema

MISSING = object()


class Unfit(Exception):
    """A value is not of the type that an argument has."""


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments in order, cast to their types."""
    arguments = schema.arguments
    positional = sum(not a.kwarg_only for a in arguments)
    if len(args) + len(kwargs) > len(arguments):
        raise RuntimeError(f"{schema.name}() expected at most {len(arguments)} argument(s) but received "
                           f"{len(args) + len(kwargs)} argument(s). Declaration: {schema}")
    if len(args) > positional:
        raise RuntimeError(f"{schema.name}() takes {positional} positional argument(s) but {len(args)} was/were given."
                           f"  Declaration: {schema}")
    values: list[Any] = []
    used = 0
    for position, argument in enumerate(arguments):
        value: Any = args[position] if position < len(args) else kwargs.get(argument.name, MISSING)
        used += argument.name in kwargs and position >= len(args)
        if value is MISSING:
            if not argument.has_default:
                raise RuntimeError(f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: "
                                   f"{schema}")
            values.append(argument.default_for_call())
            continue
        try:
            values.append(cast(argument, value))
        except Unfit as problem:
            raise RuntimeError(
                f"{schema.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but "
                f"instead found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: "
                f"{schema}\nCast error details: {problem}") from None
    if used != len(kwargs):
        _complain(schema, args, kwargs)
    return values


def _complain(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    names = [a.name for a in schema.arguments]
    for name in kwargs:
        if name not in names:
            raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {schema}")
        if names.index(name) < len(args):
            raise RuntimeError(f"Argument '{name}' specified both as positional and keyword argument. Schema: {schema}")


def cast(argument: Argument, value: Any) -> Any:
    """A value, converted to an argument's type."""
    if value is None and (argument.is_optional or (argument.is_tensor and not argument.is_list)):
        return None
    if not argument.is_list:
        return cast_item(argument.base, value)
    if argument.length and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value] * argument.length
    if isinstance(value, (Tensor, str)) or not hasattr(value, "__iter__"):
        raise Unfit(f"Unable to cast Python instance of type {type(value)}")
    return [None if item is None and argument.items_optional else cast_item(argument.base, item) for item in value]


def cast_item(base: str, value: Any) -> Any:
    """One value, or one item of a list."""
    found = MISSING
    if base == "Tensor":
        if isinstance(value, Tensor):
            return value
        raise Unfit(f"Unable to cast {value} to Tensor")
    if isinstance(value, Tensor) and value.numel() == 1 and base in ("int", "SymInt", "float", "bool", "Scalar"):
        value = value.item()
    if base in ("int", "SymInt"):
        found = int(value) if hasattr(value, "__index__") else MISSING
    elif base in ("float", "SymFloat"):
        found = float(value) if hasattr(value, "__float__") and not isinstance(value, (str, Tensor)) else MISSING
    elif base == "bool":
        found = bool(value) if hasattr(value, "__index__") else MISSING
    elif base == "Device":
        found = as_device(value) if isinstance(value, (device, str)) else MISSING
    elif base == "ScalarType":
        found = value if isinstance(value, dtype) else MISSING
    elif base == "str":
        found = value if isinstance(value, str) else MISSING
    elif base == "Scalar":
        found = value if isinstance(value, Number) else MISSING
    else:
        found = value
    if found is MISSING:
        raise Unfit(f"Unable to cast Python instance of type {type(value)}")
    return found


def results(schema: FunctionSchema, made: Any) -> Any:
    """A kernel's results, converted to the types of the signature."""
    if not schema.returns:
        if made is not None:
            raise RuntimeError(f"Expected PythonKernelHolder for {schema.name} to return None but it returned "
                               "something else instead.")
        return None
    if len(schema.returns) == 1 and not schema.result_text.startswith("(("):
        return _result(schema.returns[0], made)
    if not isinstance(made, (tuple, list)):
        raise TypeError(f"Object of type '{type(made).__name__}' is not an instance of 'sequence'")
    if len(made) != len(schema.returns):
        raise RuntimeError(f"{schema.name}: expected {len(schema.returns)} results from the kernel, got {len(made)}")
    return tuple(_result(declared, value) for declared, value in zip(schema.returns, made, strict=True))


def _result(declared: Argument, value: Any) -> Any:
    try:
        return cast(declared, value)
    except Unfit as problem:
        raise RuntimeError(str(problem)) from None
