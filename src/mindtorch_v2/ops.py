"""`torch.ops`: the op table by namespace, name and overload.

>>> import mindtorch_v2 as torch
>>> torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ._dispatch.dispatch_modes import OVERLOAD_OF
from ._dispatch.dispatcher import compile_op
from ._dispatch.namespace import find, load_late
from ._dispatch.overload_names import is_inplace_alone, overload_name
from ._dispatch.overriding import ACTIVE, CLASSES, offered_op
from ._dispatch.registry import CHOOSERS, OVERLOADS, Op
from ._dispatch.schema import INDICES
from ._library import table
from ._library.absent_ops import ABSENT, ABSENT_OVERLOADS, absent
from ._library.custom_ops import OVERLOAD
from ._library.definition import Definition
from ._library.fact_ops import FACTS, fact_op
from ._library.schema import FunctionSchema, of_op
from ._ops.indexing import as_indices


def _takes_indices(op: Op) -> bool:
    """Whether an op of the table takes a list of index tensors."""
    return op.namespace == "aten" and any(argument.type == INDICES for argument in op.schema.arguments)


def _called_by_programs(op: Op, inplace: bool) -> Callable[..., Any]:
    """The function of an op of the table; index tensors come as a list, with None for whole dimensions."""
    function = compile_op(op, inplace)
    if not _takes_indices(op):
        return function
    place = next(i for i, argument in enumerate(op.schema.arguments) if argument.type == INDICES)
    name = op.schema.arguments[place].name

    def call(*args: Any, **kwargs: Any) -> Any:
        if name in kwargs:
            kwargs[name] = as_indices(kwargs[name])
        elif len(args) > place:
            args = (*args[:place], as_indices(args[place]), *args[place + 1:])
        return function(*args, **kwargs)

    return call


# Ops made of others here that give views, or may, by their signatures in PyTorch.
MADE_VIEWS = frozenset({"chunk", "contiguous", "detach", "lift_fresh", "reshape", "to"})


class OpOverload:
    """One overload of an op."""

    def __init__(self, op: Op, inplace: bool = False, definition: Definition | None = None,
                 overload: str | None = None) -> None:
        self._op = op
        self._inplace = inplace
        self._definition = definition
        self._call: Callable[..., Any] = _called_by_programs(op, inplace) if definition is None else definition
        self._returns_list = definition is None and op.schema.returns[:1] == ("Tensor[]",)
        self._opname = op.name + ("_" if inplace else "")
        self._overloadname = overload or overload_name(op, inplace) or "default"
        self.namespace = self._namespace = op.namespace
        self._defined_in_python = definition is not None
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = str(self)
        self.__module__ = f"torch._ops.{op.namespace}"
        self.tags: list[Any] = [] if definition is None else list(definition.tags)

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self  # there is one of each

    @property
    def _schema(self) -> FunctionSchema:
        if self._definition is not None:
            return self._definition.schema
        return of_op(self._op.namespace, self._op.schema, self._inplace, self._overloadname)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The op of which this is an overload."""
        return getattr(namespace(self._namespace), self._opname)

    @property
    def is_view(self) -> bool:
        """Whether the result shares an argument's memory."""
        return self._op.view or (self._op.namespace == "aten" and self._opname in MADE_VIEWS) or (
            self._schema._is_view_op())

    def name(self) -> str:
        """The qualified name, `aten::add.Tensor`."""
        suffix = f".{self._overloadname}" if self._overloadname != "default" else ""
        return f"{self._namespace}::{self._opname}{suffix}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE or CLASSES:
            answer = offered_op(self, args, kwargs, sys._getframe(1))
            if answer is not None:
                return answer[0]
        made = self._call(*args, **kwargs)
        return list(made) if self._returns_list and type(made) is tuple else made

    def redispatch(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Continue with the next dispatch keys."""
        raise NotImplementedError(f"{self}.redispatch: sets of dispatch keys are not part of this runtime; use "
                                  "torch._C._AutoDispatchBelowAutograd()")

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, OpOverload) and other._op is self._op and other._inplace == self._inplace
                and other._overloadname == self._overloadname)

    def __hash__(self) -> int:
        return hash((id(self._op), self._inplace))

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._namespace}.{self._opname}', overload='{self._overloadname}')>"


OVERLOAD.append(lambda definition: OpOverload(definition.op, definition=definition))


class OpOverloadPacket:
    """All overloads under one name; calling it picks one by its arguments."""

    def __init__(self, space: str, name: str) -> None:
        self.__name__ = self._name = name
        self._space = space
        self._inplace = False
        self._definitions: dict[str, Definition] = table.DEFINITIONS.get(space, {}).get(name, {})
        self._overloads: dict[str, Op] = {one.overload or "default": one.op for one in self._definitions.values()}
        if space == "aten":
            self._inplace = name not in OVERLOADS
            candidates = OVERLOADS.get(name[:-1] if self._inplace else name, [])
            # An entry for the in-place form alone comes after the op's own, and takes its place.
            self._overloads = {overload_name(op, self._inplace) or "default": op for op in candidates
                               if (op.inplace if self._inplace else not is_inplace_alone(op))}
        self._takes_indices = any(_takes_indices(op) for op in self._overloads.values())

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self  # there is one of each

    @property
    def _qualified_op_name(self) -> str:
        return f"{self._space}::{self._name}"

    @property
    def _schemas(self) -> dict[str, FunctionSchema]:
        return {"" if name == "default" else name: getattr(self, name)._schema for name in self._overloads}

    def overloads(self) -> list[str]:
        """The overloads' names."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        overloads = self.__dict__.get("_overloads", {})
        op = overloads.get(name)
        if op is None:
            # One op here takes a tensor or a number in its second place; these are two overloads in PyTorch.
            with_number = next((one for one in overloads.values() if one.scalar_overload == name), None)
            if with_number is not None:
                found = self.__dict__[name] = OpOverload(with_number, self._inplace, overload=name)
                return found
            if name in ABSENT_OVERLOADS.get(self.__dict__.get("_name", ""), ()):
                return absent(self._name, name)  # type: ignore[return-value]
            raise AttributeError(f"The underlying op of '{self.__dict__.get('_space')}.{self.__dict__.get('_name')}' "
                                 f"has no overload name '{name}'")
        definition = self._definitions.get("" if name == "default" else name)
        found = self.__dict__[name] = OpOverload(op, self._inplace, definition)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE or CLASSES:
            answer = offered_op(self, args, kwargs, sys._getframe(1))
            if answer is not None:
                return answer[0]
        if self._space != "aten":
            return self._call_first_fit(args, kwargs)
        function = find(self._name)
        if self._takes_indices:
            function = getattr(self, next(iter(self._overloads)))
        if function is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{self._name}'")
        return function(*args, **kwargs)

    def _call_first_fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the first overload whose signature the arguments fit."""
        problem: RuntimeError | None = None
        for definition in self._definitions.values():
            try:
                values = definition.bind(args, kwargs)
            except RuntimeError as error:
                problem = problem or error
            else:
                return definition.call_bound(values)
        raise problem or AttributeError(f"'_OpNamespace' '{self._space}' object has no attribute '{self._name}'")

    def __iter__(self) -> Iterator[str]:
        return iter(self._overloads)

    def __str__(self) -> str:
        return f"{self._space}.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._space}.{self._name}')>"


def known(name: str) -> bool:
    """Whether the loaded families have an op, or an in-place form, of this name."""
    return name in OVERLOADS or name in CHOOSERS or (
        name.endswith("_") and any(op.inplace for op in OVERLOADS.get(name[:-1], [])))


class _OpNamespace(ModuleType):
    """`torch.ops.aten`, and the namespaces of a program's own ops."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name
        self.__file__ = "torch.ops"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        space = self.__dict__["name"]
        own = name in table.DEFINITIONS.get(space, {})
        if not own and (space, name) in FACTS:
            return fact_op(space, name)  # type: ignore[return-value]
        if not own and (space != "aten" or not (known(name) or (load_late(name) and known(name)))):
            if space == "aten" and name in ABSENT:
                return absent(name)  # type: ignore[return-value]
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        found = self.__dict__[name] = OpOverloadPacket(space, name)
        return found

    def __dir__(self) -> list[str]:
        if self.name == "aten":
            load_late()
            return sorted(OVERLOADS)
        return sorted(table.DEFINITIONS.get(self.name, {}))

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self))


_SPACES: dict[str, _OpNamespace] = {}


def namespace(name: str) -> Any:
    """The namespace of a name; it exists as soon as it is asked for."""
    if name not in _SPACES:
        _SPACES[name] = _OpNamespace(name)
    return _SPACES[name]


def _overload_of(op: Op, inplace: bool, scalar: bool) -> OpOverload:
    """The object that a program gets for an op of the table, or one of its own; `scalar` for one with a number."""
    packet = getattr(namespace(op.namespace), op.name + ("_" if inplace else ""))
    if scalar and hasattr(packet, op.scalar_overload or ""):
        return getattr(packet, op.scalar_overload or "")
    return getattr(packet, overload_name(op, inplace) or "default")


OVERLOAD_OF.append(_overload_of)


def _forget(space: str, name: str) -> None:
    if space in _SPACES:
        _SPACES[space].__dict__.pop(name, None)


table.FORGET.append(_forget)
aten = namespace("aten")


# Libraries whose ops this runtime has itself: the end of the file's path -> the module that defines them.
OWN_LIBRARIES = {f"torchvision/{name}.{end}": "_vision" for name in ("_C", "_C_stable") for end in ("so", "pyd")}
OWN_LIBRARIES.update({f"torchaudio/lib/{name}.{end}": "_audio" for name in ("_torchaudio", "libtorchaudio")
                      for end in ("so", "abi3.so", "pyd")})


def load_library(path: Any) -> None:
    """Load a shared library that registers ops of PyTorch's C++ side: only those whose ops are written here as well."""
    place = str(path).replace("\\", "/")
    for end, module in OWN_LIBRARIES.items():
        if place.endswith(end):
            importlib.import_module(f".{module}", __package__).define()
            return
    raise OSError(f"torch.ops.load_library({path!r}): libraries of compiled ops need PyTorch's C++ side, which this "
                  "runtime does not have; define ops with torch.library")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    # Kept as an attribute, so that a program can delete it.
    found = globals()[name] = (importlib.import_module(".profiler.scope_ops", __package__) if name == "profiler"
                               else namespace(name))
    return found


class HigherOrderOperator:
    """An op that takes functions: a name for PyTorch's classes; those of this runtime are plain functions."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        raise NotImplementedError(f"torch._ops.HigherOrderOperator: {name} would be an op of PyTorch's compiler, which "
                                  "this runtime does not have; call the function itself")
