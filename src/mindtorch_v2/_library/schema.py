"""Signatures as programs see them: `torch.ops.ns.name.default._schema`."""

from __future__ import annotations

import ast
import re
from typing import Any

from .._device import as_device, device
from .._dispatch.describe import CODES
from .._dispatch.schema import Schema, parse_schema, split_commas
from .._dtype import ALL_DTYPES, dtype

_TYPE = re.compile(r"^(?P<base>[A-Za-z]+)(?:\((?P<alias>[^)]*)\))?(?P<inner>\?)?(?P<list>\[\d*\])?(?P<outer>\?)?$")
_PYTHON = {"SymInt": "int", "Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int",
           "SymBool": "bool", "SymFloat": "float"}
_BASES = frozenset({"Tensor", "int", "SymInt", "float", "SymFloat", "bool", "SymBool", "str", "Scalar", "ScalarType",
                    "Device", "Layout", "MemoryFormat", "Generator", "Dimname", "Storage", "Stream", "complex", "Any"})
_DTYPES: dict[str, dtype] = {name: one for one in ALL_DTYPES for name in (one.name, *one.aliases)}


class AliasInfo:
    """Which memory an argument or result shares, and whether it is written."""

    def __init__(self, text: str) -> None:
        self.is_write = "!" in text
        self.before_set = {part.strip(" !") for part in text.partition("->")[0].split("|")}
        self.after_set = self.before_set

    def __repr__(self) -> str:
        return f"AliasInfo({sorted(self.before_set)}, is_write={self.is_write})"


class Argument:
    """An argument, or a result, of an op."""

    def __init__(self, declared: str, name: str = "", default: str | None = None, kwarg_only: bool = False) -> None:
        match = _TYPE.match(declared)
        if match is None or match["base"] not in _BASES:
            raise RuntimeError(f"unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, "
                               f"bool, Scalar: {declared} {name}".rstrip())
        self.declared = declared
        self.name = name
        self.kwarg_only = kwarg_only
        self.base = match["base"]
        self.is_list = match["list"] is not None
        self.length = int(match["list"][1:-1] or 0) if self.is_list else 0
        self.items_optional = self.is_list and match["inner"] is not None
        self.is_optional = bool(match["outer"] or (match["inner"] and not self.is_list))
        self.alias_info = None if match["alias"] is None else AliasInfo(match["alias"])
        self.is_tensor = self.base == "Tensor"
        self.has_default = default is not None
        self.default: Any = None if default is None else self._value(default)

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self.has_default

    @property
    def default_value(self) -> Any:
        """The default as PyTorch has it: a dtype is a number there."""
        return CODES.get(self.default, self.default) if isinstance(self.default, dtype) else self.default

    def _value(self, text: str) -> Any:
        if text == "None":
            return None
        if self.base == "ScalarType":
            return _DTYPES[text] if text in _DTYPES else ast.literal_eval(text)
        if self.base == "Device":
            return as_device(text.strip("\"'"))
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise RuntimeError(f"the default value of '{self.declared} {self.name}' cannot be read: {text}") from None
        return float(value) if self.base == "float" and isinstance(value, int) else value

    def default_for_call(self) -> Any:
        """What a kernel gets if the argument was not given; a new list each time."""
        return list(self.default) if isinstance(self.default, list) else self.default

    @property
    def type(self) -> str:
        """The type in Python's notation: `Optional[Tensor]`, `List[int]`."""
        name = _PYTHON.get(self.base, self.base)
        if self.is_list:
            name = f"List[Optional[{name}]]" if self.items_optional else f"List[{name}]"
        return f"Optional[{name}]" if self.is_optional else name

    def __str__(self) -> str:
        if not self.has_default:
            return f"{self.declared} {self.name}"
        return f"{self.declared} {self.name}={_printed(self.default)}"


def _printed(value: Any) -> str:
    """A default as PyTorch prints it: floats with all their digits, dtypes as their numbers."""
    if isinstance(value, float):
        digits = f"{value:.17g}"
        return f"{digits}." if value.is_integer() and "e" not in digits else digits
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, device):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_printed, value)) + "]"
    return str(CODES[value] if isinstance(value, dtype) else value)


class FunctionSchema:
    """A whole signature."""

    def __init__(self, namespace: str, parsed: Schema) -> None:
        self.name = f"{namespace}::{parsed.name}"
        self.overload_name = parsed.overload
        self.arguments = [Argument(a.type, a.name, a.default, a.keyword_only) for a in parsed.arguments]
        self.result_text = parsed.text.rpartition(") ->")[2].strip()
        inside = self.result_text
        while inside.startswith("("):
            inside = inside[1:-1]
        self.returns = [Argument(one.partition(" ")[0], one.partition(" ")[2]) for one in split_commas(inside)]

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written to."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def _is_view_op(self) -> bool:
        """Whether a result shares an argument's memory and nothing is written."""
        return not self.is_mutable and any(a.alias_info is not None for a in self.arguments)

    @property
    def mutated(self) -> list[int]:
        """Positions of the arguments that are written to."""
        return [i for i, a in enumerate(self.arguments) if a.alias_info is not None and a.alias_info.is_write]

    def __str__(self) -> str:
        parts: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(str(argument))
        overload = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{overload}({', '.join(parts)}) -> {self.result_text}"

    __repr__ = __str__


def parse(namespace: str, text: str) -> FunctionSchema:
    """Read a signature that a program wrote."""
    try:
        return FunctionSchema(namespace, parse_schema(text))
    except ValueError:
        raise RuntimeError(f"not the signature of an op, such as 'name(Tensor x, int k=1) -> Tensor': {text}") from None


def of_op(namespace: str, schema: Schema, inplace: bool, overload: str) -> FunctionSchema:
    """The signature of an op of the table, or of its in-place form, under PyTorch's name for it."""
    made = FunctionSchema(namespace, schema)
    made.overload_name = "" if overload == "default" else overload
    if inplace:
        made.name += "_"
        first = made.arguments[0]
        made.arguments[0] = Argument(first.declared.replace("Tensor", "Tensor(a!)", 1), first.name)
        made.returns, made.result_text = [Argument("Tensor(a!)")], "Tensor(a!)"
    return made
