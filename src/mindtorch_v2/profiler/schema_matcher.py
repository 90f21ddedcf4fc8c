"""`SchemaMatcher`: the signatures of an op that fit the arguments of an event of a tree."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from mtprof.views.event_fields import TensorMetadata, TorchOpFields

from .._dispatch.namespace import load_late
from .._dispatch.overload_names import is_inplace_alone
from .._dispatch.registry import OVERLOADS
from .._dispatch.schema import parse_schema
from .execution_trace.op_schemas import Form, schema_text

_NAMESPACE = "aten::"
_ALIAS = re.compile(r"\((\w+)(!?)[^)]*\)")
_NUMBERS: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "int": (int,), "SymInt": (int,), "float": (int, float), "Scalar": (int, float, complex)}
# Names that recordings show but the op table lacks, because they are not its ops.
_BESIDES = {
    "result_type": ("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
                    "aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
                    "aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
                    "aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType"),
    "set_": ("aten::set_(Tensor(a!) self) -> Tensor(a!)",
             "aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
             "aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
             "aten::set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, "
             "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)"),
}


@dataclass(frozen=True)
class AliasInfo:
    """An argument that shares memory with the result."""

    before_set: frozenset[str]
    is_write: bool


@dataclass(frozen=True)
class SchemaArgument:
    """One argument of a signature."""

    name: str
    type: str
    alias_info: AliasInfo | None
    kwarg_only: bool


@dataclass(frozen=True)
class FunctionSchema:
    """A signature in PyTorch's notation, which `str()` returns."""

    name: str
    overload_name: str
    arguments: tuple[SchemaArgument, ...]
    text: str

    def __str__(self) -> str:
        return self.text


class SchemaMatcher:
    """Finds the signatures of ops. An event states its op and arguments, but not the overload."""

    @staticmethod
    def lookup_schemas(name: str) -> tuple[FunctionSchema, ...] | None:
        """All signatures of an op; none for an unknown op; None for a name without a namespace, which cannot be an
        op."""
        if "::" not in name:
            return None
        return _schemas(name[len(_NAMESPACE):]) if name.startswith(_NAMESPACE) else ()

    @classmethod
    def match_schemas(cls, t: TorchOpFields) -> tuple[FunctionSchema, ...]:
        """The signatures that fit."""
        return tuple(schema for schema in cls.lookup_schemas(t.name) or () if len(schema.arguments) == len(t.inputs)
                     and all(cls._types_match(given, argument.type)
                             for given, argument in zip(t.inputs, schema.arguments)))

    @classmethod
    def inputs_are_mutable(cls, t: TorchOpFields) -> tuple[bool | None, ...]:
        """For each argument whether the op may change it; None if no signature fits."""
        found = cls.match_schemas(t)
        if not found:
            return (None,) * len(t.inputs)
        return tuple(any(argument.alias_info is not None and argument.alias_info.is_write for argument in arguments)
                     for arguments in zip(*(schema.arguments for schema in found)))

    @staticmethod
    def _types_match(given: Any, kind: str) -> bool:
        """Whether an argument of an event can have a type. None stands for everything that events do not show."""
        base = kind.removesuffix("?")
        tensors = base.startswith("Tensor")
        if isinstance(given, TensorMetadata):
            return base == "Tensor"
        if isinstance(given, list):
            return tensors and base.endswith("]")
        if given is None:
            return kind.endswith("?") or (not tensors and base not in _NUMBERS)
        # Element types and memory formats are numbers in events, and a number may stand for a list of them.
        return isinstance(given, _NUMBERS.get(base, (int,))) and not tensors


@functools.cache
def _schemas(name: str) -> tuple[FunctionSchema, ...]:
    load_late(name)
    forms: dict[str, Form] = {}
    for inplace in (False, True):
        if inplace and not name.endswith("_"):
            break
        for op in OVERLOADS.get(name[:-1] if inplace else name, ()):
            if not op.inplace if inplace else is_inplace_alone(op):
                continue
            found = [Form(op, inplace)]
            if op.scalar_overload is not None:
                found.append(Form(op, inplace, scalar=True))
            if not inplace and op.schema.returns == ("Tensor",):
                found.append(Form(op, out=True))
            if op.key == "to.dtype_layout":
                found += [Form(op, variant="device"), Form(op, variant="dtype")]
            forms.update((schema_text(form), form) for form in found)
    return tuple(map(_parsed, (*_BESIDES.get(name, ()), *forms)))


def _parsed(text: str) -> FunctionSchema:
    plain = parse_schema(_ALIAS.sub("", text.removeprefix(_NAMESPACE).partition("(")[2].rpartition(") ->")[0])
                         .join(("op(", ") -> Tensor")))
    aliases = _aliases(text)
    name, _, overload = text.partition("(")[0].partition(".")
    return FunctionSchema(name, overload, tuple(
        SchemaArgument(argument.name, argument.type, aliases.get(argument.name), argument.keyword_only)
        for argument in plain.arguments), text)


def _aliases(text: str) -> dict[str, AliasInfo]:
    """By argument, how it shares memory: `Tensor(a!) self`."""
    found = re.finditer(r"Tensor\((\w+)(!?)[^)]*\)\S* (\w+)", text.rpartition(" -> ")[0].partition("(")[2])
    return {match[3]: AliasInfo(frozenset({match[1]}), bool(match[2])) for match in found}
