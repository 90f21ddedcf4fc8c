"""`torch.ops.aten`: the op table by name and overload.

>>> import mindtorch_v2 as torch
>>> torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ._dispatch.dispatcher import compile_op
from ._dispatch.namespace import find, load_late
from ._dispatch.registry import CHOOSERS, OVERLOADS, Op
from ._dispatch.schema import Schema


class OpOverload:
    """One overload of an op."""

    def __init__(self, op: Op, inplace: bool) -> None:
        self._op = op
        self._inplace = inplace
        self._call: Callable[..., Any] = compile_op(op, inplace)
        self.__name__ = f"{self._base()}.{self._overloadname}"

    def _base(self) -> str:
        return self._op.name + ("_" if self._inplace else "")

    @property
    def _overloadname(self) -> str:
        return self._op.overload or "default"

    @property
    def _schema(self) -> Schema:
        return self._op.schema

    def name(self) -> str:
        """The qualified name, `aten::add.Tensor`."""
        suffix = f".{self._op.overload}" if self._op.overload else ""
        return f"aten::{self._base()}{suffix}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._base()}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads under one name; calling it picks one by its arguments."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        inplace = name not in OVERLOADS
        base = name[:-1] if inplace else name
        candidates = OVERLOADS.get(base, [])
        self._inplace = inplace
        self._overloads = {op.overload or "default": op for op in candidates if not inplace or op.inplace}

    def overloads(self) -> list[str]:
        """The overloads' names."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        op = self.__dict__.get("_overloads", {}).get(name)
        if op is None:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        found = self.__dict__[name] = OpOverload(op, self._inplace)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = find(self.__name__)
        if function is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{self.__name__}'")
        return function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def known(name: str) -> bool:
    """Whether the loaded families have an op, or an in-place form, of this name."""
    return name in OVERLOADS or name in CHOOSERS or (
        name.endswith("_") and any(op.inplace for op in OVERLOADS.get(name[:-1], [])))


class _Namespace:
    """`torch.ops.aten`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if self.__dict__["name"] != "aten" or not (known(name) or (load_late() and known(name))):
            raise AttributeError(f"'_OpNamespace' '{self.__dict__['name']}' object has no attribute '{name}'")
        found = self.__dict__[name] = OpOverloadPacket(name)
        return found

    def __dir__(self) -> list[str]:
        load_late()
        return sorted(OVERLOADS)


aten = _Namespace("aten")


def __getattr__(name: str) -> Any:
    if name == "profiler":
        found = globals()[name] = importlib.import_module(".profiler.scope_ops", __package__)
        return found
    raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
