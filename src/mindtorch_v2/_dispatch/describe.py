"""What a recording keeps of an op's arguments: of tensors their geometry, of everything else the value.

Descriptions are interned while recording: an event holds a number, and the same arguments are stored once. Keeping a
tuple per event instead would make Python's garbage collector walk millions of them again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._device import device
from .._dtype import dtype
from .._memory_format import memory_format
from .._tensor import Tensor
from .native import NATIVE

# Descriptions by number. Never shortened, so numbers stay valid; distinct argument lists are few.
INPUTS: list[tuple[Any, ...]] = []
_BY_KEY: dict[Any, int] = {}
ATOMS = frozenset((int, float, bool, complex, str, type(None)))


def describe_value(value: Any) -> Any:
    """A tensor as `(shape, dtype, strides in bytes)`, sequences item by item, other values as they are."""
    if isinstance(value, Tensor):
        array = value._a
        return (array.shape, array.dtype, array.strides)
    if isinstance(value, (list, tuple)):
        return tuple([describe_value(v) for v in value])
    return value if type(value) in ATOMS else repr(value)


def key_of(value: Any) -> Any:
    """Something hashable that differs where descriptions differ; 1, 1.0 and True are equal but not the same."""
    kind = type(value)
    if kind in ATOMS:
        return (kind, value)
    if isinstance(value, (list, tuple)):
        return tuple([key_of(v) for v in value])
    described = describe_value(value)
    return described if isinstance(value, Tensor) else (kind, described)


def note(known: dict[Any, int], key: Any, values: tuple[Any, ...]) -> int:
    """Store a description that was not seen before and return its number."""
    INPUTS.append(tuple([describe_value(v) for v in values]))
    found = known[key] = len(INPUTS) - 1
    return found


def _describe_each(*values: Any) -> int:
    key = tuple([key_of(v) for v in values])
    found = _BY_KEY.get(key)
    return note(_BY_KEY, key, values) if found is None else found


def describe_all(values: tuple[Any, ...]) -> int:
    """The number of the description of some values; for events that are not ops."""
    return _remembered(*values)


def describer_source(names: list[str], tensors: set[str]) -> str:
    """Source of a function from an op's arguments to their description's number, the usual case written out."""
    parts = [
        f"((a := {name}._a).shape, a.dtype, a.strides) if type({name}) in TENSOR_TYPES else key_of({name})"
        if name in tensors else f"key_of({name})"
        for name in names
    ]
    listed = ", ".join(names)
    comma = "," if len(names) == 1 else ""
    return (
        "def make(key_of, note):\n"
        "    known = {}\n"
        f"    def describe({listed}):\n"
        f"        key = ({', '.join(parts)}{comma})\n"
        "        found = known.get(key)\n"
        f"        return note(known, key, ({listed}{comma})) if found is None else found\n"
        "    return describe\n"
    )


Describer = Callable[..., int]


def remembering(describe: Describer) -> Describer:
    """The same function; the native twin knows the numbers of usual arguments without asking it again."""
    return describe if NATIVE is None else NATIVE.Describer(describe)


if NATIVE is not None:
    # Values of these classes never change, so that one object always has one description.
    NATIVE.set_tensor(Tensor, (dtype, device, memory_format))
_remembered = remembering(_describe_each)
