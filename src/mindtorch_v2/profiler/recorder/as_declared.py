"""Recorded arguments as the op that PyTorch calls gets them."""

from __future__ import annotations

import functools
from typing import Any

from mtprof.trace import Arguments, TensorInput

from ..._dispatch.overload_names import overload_name
from ..._dispatch.registry import OVERLOADS

# For these ops PyTorch makes a tensor of a Python number, although they have overloads for numbers.
_NUMBERS_BECOME_TENSORS = frozenset((
    "add", "div", "divide", "floor_divide", "mul", "multiply", "sub", "subtract", "true_divide"))
# The element type of that tensor.
_KINDS = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def _tensor(value: Any) -> Any:
    kind = _KINDS.get(type(value))
    return value if kind is None else TensorInput((), kind, ())


def _real(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _reals(value: Any) -> Any:
    return [_real(item) for item in value] if type(value) is list else value


@functools.cache
def _changes(name: str, overload: str) -> tuple[tuple[int, Any], ...]:
    """The places among an op's arguments where it takes something else than what a program may write."""
    base = name.removeprefix("aten::")
    for spelled in (base, base.removesuffix("_")):
        for op in OVERLOADS.get(spelled, []):
            if overload_name(op, spelled != base) == overload and (spelled == base or op.inplace):
                return tuple((place, change) for place, one in enumerate(op.schema.arguments)
                             if (change := _change(spelled, one.type)) is not None)
    return ()


def _change(op: str, kind: str) -> Any:
    if kind == "Tensor":
        return _tensor if op in _NUMBERS_BECOME_TENSORS else None
    return _real if kind in ("float", "float?") else _reals if kind.startswith("float[") else None


def as_declared(name: str, overload: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with a tensor without dimensions for a number where the op takes a tensor, and floats where it
    takes floats; the same object if nothing changes."""
    made = list(values)
    for place, change in _changes(name, overload):
        if place < len(made):
            made[place] = change(made[place])
    if all(one is before for one, before in zip(made, values)):
        return values
    return Arguments(tuple(made), values.named) if isinstance(values, Arguments) else tuple(made)
