"""Op signatures in PyTorch's notation: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Argument:
    """One parameter of an op."""

    name: str
    type: str
    default: str | None
    keyword_only: bool

    @property
    def is_tensor(self) -> bool:
        """Whether this is a tensor, an optional tensor or a list of tensors."""
        return self.type.startswith("Tensor")

    @property
    def is_list(self) -> bool:
        """Whether this is a list of tensors."""
        return self.type.startswith("Tensor") and "[]" in self.type

    @property
    def is_optional(self) -> bool:
        """Whether None may be passed."""
        return self.type.endswith("?")

    @property
    def python_name(self) -> str:
        """The name users pass it by: PyTorch's functions call `self` `input`."""
        return "input" if self.name == "self" else self.name


@dataclass(frozen=True)
class Schema:
    """A parsed signature."""

    text: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    tensors: tuple[Argument, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", tuple(a for a in self.arguments if a.is_tensor))


def list_length(kind: str) -> int:
    """The length of a list of this type: 2 for `int[2]?`, 1 if the type leaves it open."""
    inside = kind.partition("[")[2].partition("]")[0]
    return int(inside) if inside.isdecimal() else 1


# The type of indices by position: a list of tensors and Nones to a program, a list of its own to the op.
INDICES = "Any"
_HEAD = re.compile(r"^\s*(\w+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.*?)\s*$", re.S)


def op_name(text: str) -> tuple[str, str]:
    """The name and overload at the start of a schema, without parsing the rest."""
    head = text[: text.index("(")].strip()
    name, _, overload = head.partition(".")
    return name, overload


def split_commas(text: str) -> list[str]:
    """The parts between commas, except commas inside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def parse_schema(text: str) -> Schema:
    """Parse a signature; a malformed one is a programming error and raises ValueError."""
    match = _HEAD.match(text)
    if match is None:
        raise ValueError(f"not an op schema: {text!r}")
    name, overload, inside, outside = match.groups()
    arguments = []
    keyword_only = False
    for part in split_commas(inside):
        if part == "*":
            keyword_only = True
            continue
        type_name, _, rest = part.partition(" ")
        argument_name, equals, default = rest.strip().partition("=")
        arguments.append(Argument(argument_name, type_name, default if equals else None, keyword_only))
    returns = tuple(r.split()[0] for r in split_commas(outside.strip("()")))
    return Schema(text, name, overload or "", tuple(arguments), returns)


def as_given(schema: Schema, values: Iterable[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as PyTorch passes them on: keyword-only ones by name, and without those at their defaults."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument, value in zip(schema.arguments, values, strict=True):
        if "[" in argument.type and value is not None:
            # Lists arrive as lists, whatever sequence was given; a single number as a list of it.
            value = list(value) if isinstance(value, (list, tuple)) else [value] if type(value) is int else value
        if not argument.keyword_only:
            args.append(value)
        elif not _is_default(value, argument.default):
            kwargs[argument.name] = value
    while args and _is_default(args[-1], schema.arguments[len(args) - 1].default):
        args.pop()
    return tuple(args), kwargs


def _is_default(value: Any, default: str | None) -> bool:
    """Whether a value equals the text of a signature. A tensor never does, and its class may have its own
    `__repr__`."""
    if default is None or hasattr(value, "_a"):
        return False
    return repr(value) == default.replace('"', "'")
