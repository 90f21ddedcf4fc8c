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
        before, arrow, after = text.partition("->")
        self.is_write = "!" in text
        self.before_set = {part.strip(" !") for part in before.split("|")}
        self.after_set = {part.strip(" !") for part in after.split("|")} if arrow else self.before_set

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AliasInfo) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.is_write, frozenset(self.before_set)))

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

    @property
    def N(self) -> int | None:
        """The length of a list of fixed length."""
        return self.length or None

    @property
    def without_length(self) -> str:
        """The type as it was written, as a list of any length."""
        return re.sub(r"\[\d+\]", "[]", self.declared)

    @property
    def is_out(self) -> bool:
        """Whether results are written into it."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    def takes_what_it_took(self, old: Argument, forward: bool = False) -> bool:
        """Whether calls for an older argument are calls for this one, or with `forward` the other way round."""
        if (self.name, self.N, self.alias_info) != (old.name, old.N, old.alias_info):
            return False
        if self.kwarg_only and not old.kwarg_only:
            return False
        narrow, wide = (self, old) if forward else (old, self)
        if not _is_kind_of(narrow, wide):
            return False
        if forward and self.has_default and not old.has_default:
            return False
        return not old.has_default or (self.has_default and self.default == old.default)

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


def _is_kind_of(narrow: Argument, wide: Argument) -> bool:
    """Whether every value of one type is one of another: of `Tensor` and `Tensor?`, of `int` and `Scalar`."""
    if narrow.type == wide.type:
        return True
    if narrow.is_optional and not wide.is_optional:
        return False
    if (narrow.is_list, narrow.items_optional) != (wide.is_list, wide.items_optional):
        return False
    one, other = (_PYTHON.get(argument.base, argument.base) for argument in (narrow, wide))
    return one == other or (not narrow.is_list and other == "number" and one in ("int", "float", "complex"))


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
        self.name = f"{namespace}::{parsed.name}" if namespace else parsed.name
        self.overload_name = parsed.overload
        self.arguments = [Argument(a.type, a.name, a.default, a.keyword_only) for a in parsed.arguments]
        self.result_text = re.split(r"\)\s*->", parsed.text)[-1].strip()
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

    def _outs_from(self) -> int:
        """Where the arguments that results are written into begin."""
        return next((i for i, one in enumerate(self.arguments) if one.is_out), len(self.arguments))

    def _is_same_op(self, old: FunctionSchema) -> bool:
        return (self.name, self.overload_name, len(self.returns)) == (old.name, old.overload_name, len(old.returns))

    def is_backward_compatible_with(self, old: FunctionSchema) -> bool:
        """Whether calls for an older signature are calls for this one, with results of the same kinds."""
        if not self._is_same_op(old) or not all(
                before.takes_what_it_took(now) for before, now in zip(old.returns, self.returns)):
            return False
        before, now = old._outs_from(), self._outs_from()
        if before > now or len(old.arguments) - before > len(self.arguments) - now:
            return False
        added = self.arguments[before:now]
        pairs = [*zip(self.arguments[:before], old.arguments[:before]),
                 *zip(self.arguments[now:], old.arguments[before:])]
        return all(one.has_default for one in added) and all(one.takes_what_it_took(other) for one, other in pairs)

    def check_forward_compatible_with(self, old: FunctionSchema) -> tuple[bool, str]:
        """Whether calls for this signature that leave out what is new are calls for the older one; and why not.

        As in PyTorch, results and arguments that are gone are not looked at.
        """
        if not self._is_same_op(old):
            return False, ""
        first, start = old._outs_from(), self._outs_from()
        if len(self.arguments) - start != len(old.arguments) - first:
            return False, "Function schema should have the same number of out arguments"
        for one, other in zip(self.arguments[:start], old.arguments[:first]):
            if not one.takes_what_it_took(other, forward=True):
                return False, f"'{one.name}' is not forward compatible with the older version of the schema"
        for one in self.arguments[first:start]:
            if not one.has_default:
                return False, (f"Function schema is not forward compatible since the new argument '{one.name}' of type "
                               f"{one.without_length} did not provide a default value.")
            if isinstance(one.default, list):
                return False, (f"Function schema is not forward compatible since the new argument '{one.name}' of type "
                               f"{one.without_length} has a container type as its default value.")
        for one, other in zip(self.arguments[start:], old.arguments[first:]):
            if not one.takes_what_it_took(other, forward=True):
                return False, (f"Out argument '{one.name}' is not forward compatible with the older version of the "
                               "schema")
        return True, ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

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


def parse_signature(text: str) -> FunctionSchema:
    """`torch._C.parse_schema`: a signature with its namespace, if it has one.

    >>> parse_signature("docs::scale.by(Tensor x, float by=2) -> Tensor").arguments[1].default_value
    2.0
    """
    if "(" not in text:
        raise RuntimeError("Tried to parse a function schema but only the operator name was given")
    namespace, found, rest = text.partition("::")
    return parse(namespace, rest) if found and "(" not in namespace else parse("", text)
