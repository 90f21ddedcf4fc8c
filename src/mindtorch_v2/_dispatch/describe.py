"""What a recording keeps of an op's arguments: the geometry of tensors, the value of everything else.

Descriptions are interned while recording: an event holds a number, and equal arguments are stored once. A tuple per
event would make Python's garbage collector walk millions of them again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from .._device import device
from .._dtype import ALL_DTYPES, dtype
from .._memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from .._tensor import Tensor
from .interning import place_of_new
from .native import NATIVE
from .schema import Argument, list_length

# Descriptions by number, and the tables that hold numbers. Only `forget_all` empties both.
INPUTS: list[tuple[Any, ...]] = []
_BY_KEY: dict[Any, int] = {}
_TABLES: list[dict[Any, int]] = []
# PyTorch's numbers of element types and memory formats, which its profiles show.
_SCALAR_TYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
                 "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15, "uint16": 27, "uint32": 28, "uint64": 29}
CODES: dict[Any, int] = {known: _SCALAR_TYPES[known.name] for known in ALL_DTYPES if known.name in _SCALAR_TYPES}
CODES |= {contiguous_format: 0, preserve_format: 1, channels_last: 2, channels_last_3d: 3}
DEEPEST = 6  # levels of nested lists: no op takes deeper ones, and a list can contain itself
ATOMS = frozenset((int, float, bool, complex, str, type(None)))


def describe_value(value: Any, depth: int = 0) -> Any:
    """A tensor as `(shape, dtype, strides in bytes)`, a dtype as its number, sequences item by item, otherwise the
    value."""
    array = value if type(value) is ndarray else value._a if isinstance(value, Tensor) else None
    if array is not None:
        return (array.shape, array.dtype, array.strides)
    if isinstance(value, (list, tuple)):
        return "..." if depth == DEEPEST else tuple([describe_value(v, depth + 1) for v in value])
    if isinstance(value, (dtype, memory_format)) and value in CODES:
        return CODES[value]
    return value if type(value) in ATOMS else repr(value)


def key_of(value: Any, depth: int = 0) -> Any:
    """A hashable value that differs where descriptions differ; 1, 1.0 and True are equal but not the same."""
    kind = type(value)
    if kind in ATOMS:
        return (kind, value)
    if isinstance(value, (list, tuple)):
        return "..." if depth == DEEPEST else tuple([key_of(v, depth + 1) for v in value])
    described = describe_value(value)
    return described if kind is ndarray or isinstance(value, Tensor) else (kind, described)


def note(known: dict[Any, int], key: Any, values: tuple[Any, ...]) -> int:
    """Store a new description and return its number."""
    return store(known, key, tuple([describe_value(v) for v in values]))


def store(known: dict[Any, int], key: Any, described: tuple[Any, ...]) -> int:
    """The number of a new description; a table keeps it until all are dropped."""
    if not known:
        _TABLES.append(known)
    found = known[key] = place_of_new(INPUTS, described)
    return found


def stands_for_list(schema_text: str) -> bool:
    """Whether an op takes lists for which a number can stand."""
    return "int[" in schema_text or "float[" in schema_text


def list_lengths(arguments: Sequence[Argument]) -> list[int]:
    """For each argument of an op, the length of the list that a number stands for there; 0 if it stands for none."""
    return [list_length(a.type) if a.type.startswith(("int[", "float[")) else 0 for a in arguments]


def noting(lengths: Sequence[int]) -> Callable[..., int]:
    """`note` for an op: a number that stands for a list is shown as the list, as PyTorch's ops get it."""
    if not any(lengths):
        return note

    def note_typed(known: dict[Any, int], key: Any, values: tuple[Any, ...]) -> int:
        return note(known, key, tuple([[value] * length if length and type(value) in (int, float) else value
                                       for value, length in zip(values, lengths)]))

    return note_typed


def describe_each(*values: Any) -> int:
    """The number of the description of the unchanged values."""
    key = tuple([key_of(v) for v in values])
    found = _BY_KEY.get(key)
    return note(_BY_KEY, key, values) if found is None else found


def forget_all() -> None:
    """Drop all descriptions once nothing uses their numbers: an optimizer's numbers are new at each step."""
    for known in _TABLES:
        known.clear()
    _TABLES.clear()
    INPUTS.clear()
    if NATIVE is not None:
        NATIVE.forget()


def describe_all(values: tuple[Any, ...]) -> int:
    """The number of the description of some values, for events that are not ops."""
    return describe_any(*values)


def describer_source(names: list[str], tensors: set[str]) -> str:
    """Source of a function from an op's arguments to their description's number, with the usual case written out."""
    parts = [
        f"((a_ := {name}._a).shape, a_.dtype, a_.strides) if type({name}) in TENSOR_TYPES else key_of_({name})"
        if name in tensors else f"key_of_({name})"
        for name in names
    ]
    listed = ", ".join(names)
    comma = "," if len(names) == 1 else ""
    return (
        "def make(key_of_, note_):\n"
        "    known_ = {}\n"
        f"    def describe({listed}):\n"
        f"        key_ = ({', '.join(parts)}{comma})\n"
        "        found_ = known_.get(key_)\n"
        f"        return note_(known_, key_, ({listed}{comma})) if found_ is None else found_\n"
        "    return describe\n"
    )


Describer = Callable[..., int]


def remembering(describe: Describer, plain: bool = False) -> Describer:
    """The same function; the native twin remembers the numbers of usual arguments without calling it again.

    `plain` means that it describes the arguments unchanged, which the twin can do by itself.
    """
    return describe if NATIVE is None else NATIVE.Describer(describe, plain)


if NATIVE is not None:
    # Values of these classes never change, so one object always has one description.
    NATIVE.set_tensor(Tensor, (dtype, device, memory_format), INPUTS)
describe_any = remembering(describe_each, True)
