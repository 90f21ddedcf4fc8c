"""Ops that say what a tensor looks like, such as `torch.ops.aten.sym_size`, and classes that answer them.

Here the facts are the array's, and no op is needed to read them. A class whose instances wrap other tensors may keep
them itself: `_make_wrapper_subclass` is told so, and then the methods of the class ask its `__torch_dispatch__`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .._methods import TOLD
from .._shape import Size, wrap_dim
from .._tensor import Tensor

# Namespace and name -> overloads and what they tell.
FACTS: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {
    ("aten", "dim"): {"default": lambda self: self.dim()},
    ("aten", "is_contiguous"): {
        "default": lambda self: self.is_contiguous(),
        "memory_format": lambda self, memory_format: self.is_contiguous(memory_format=memory_format)},
    ("aten", "numel"): {"default": lambda self: self.numel()},
    ("aten", "size"): {"default": lambda self: list(self.shape), "int": lambda self, dim: self.size(dim)},
    ("aten", "storage_offset"): {"default": lambda self: self.storage_offset()},
    ("aten", "stride"): {"default": lambda self: list(self.stride()), "int": lambda self, dim: self.stride(dim)},
    ("aten", "sym_numel"): {"default": lambda self: self.numel()},
    ("aten", "sym_size"): {"default": lambda self: list(self.shape), "int": lambda self, dim: self.size(dim)},
    ("aten", "sym_storage_offset"): {"default": lambda self: self.storage_offset()},
    ("aten", "sym_stride"): {"default": lambda self: list(self.stride()), "int": lambda self, dim: self.stride(dim)},
    ("prim", "device"): {"default": lambda self: self.device},
    ("prim", "layout"): {"default": lambda self: self.layout},
}


class FactOp:
    """One of these ops; its attributes are the overloads."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace, self._name = namespace, name
        self.__name__ = name
        for overload in FACTS[namespace, name]:
            setattr(self, overload, FactOverload(self, overload))

    @property
    def _qualified_op_name(self) -> str:
        return f"{self._namespace}::{self._name}"

    def overloads(self) -> list[str]:
        """The overloads' names."""
        return list(FACTS[self._namespace, self._name])

    def __deepcopy__(self, memo: Any) -> FactOp:
        return self  # there is one of each

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The overload for as many arguments."""
        several = self.overloads()[len(args) + len(kwargs) > 1:]
        return getattr(self, several[0])(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self._namespace}.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class FactOverload:
    """An overload of such an op."""

    def __init__(self, op: FactOp, overload: str) -> None:
        self.overloadpacket, self._overloadname = op, overload
        self.namespace = op._namespace
        self.__name__ = f"{op._name}.{overload}"
        self.__module__ = f"torch._ops.{op._namespace}"

    def __deepcopy__(self, memo: Any) -> FactOverload:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the tensor, or its class, says."""
        return FACTS[self.namespace, self.overloadpacket._name][self._overloadname](*args, **kwargs)

    def name(self) -> str:
        """The qualified name, `aten::dim`."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.overloadpacket._qualified_op_name}{suffix}"

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


@cache
def fact_op(namespace: str, name: str) -> FactOp:
    """One object for one name."""
    return FactOp(namespace, name)


# -- classes that answer -----------------------------------------------------------------------------------------------


def ask(tensor: Tensor, name: str, *args: Any, overload: str = "default", namespace: str = "aten") -> Any:
    """What a tensor's class says of it."""
    kind: Any = type(tensor)
    function = getattr(fact_op(namespace, name), overload)
    result = kind.__torch_dispatch__(function, (kind,), (tensor, *args), {})
    if result is NotImplemented:
        raise TypeError(f"Multiple dispatch failed for 'torch.ops.{namespace}.{name}'; all __torch_dispatch__ handlers "
                        f"returned NotImplemented:\n\n  - tensor subclass {kind!r}")
    return result


def _size(self: Tensor, dim: int | None = None) -> Any:
    if dim is None:
        return Size(ask(self, "sym_size"))
    place = wrap_dim(dim, ask(self, "dim"))
    return ask(self, "sym_size")[place]


def _stride(self: Tensor, dim: int | None = None) -> Any:
    steps = tuple(ask(self, "sym_stride"))
    return steps if dim is None else steps[wrap_dim(dim, len(steps))]


def _is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    if memory_format is None:
        return bool(ask(self, "is_contiguous"))
    return bool(ask(self, "is_contiguous", memory_format, overload="memory_format"))


def _dim(self: Tensor) -> int:
    return int(ask(self, "dim"))


def _numel(self: Tensor) -> int:
    return int(ask(self, "sym_numel"))


def _storage_offset(self: Tensor) -> int:
    return int(ask(self, "sym_storage_offset"))


STRIDES: dict[str, Any] = {"stride": _stride, "is_contiguous": _is_contiguous}
SIZES: dict[str, Any] = {
    **STRIDES, "size": _size, "shape": property(_size), "dim": _dim, "ndimension": _dim, "ndim": property(_dim),
    "numel": _numel, "nelement": _numel, "storage_offset": _storage_offset, "__len__": lambda self: _size(self, 0)}
POLICIES: dict[str, dict[str, Any]] = {
    "strides": STRIDES, "sizes": SIZES,
    "device": {"device": property(lambda self: ask(self, "device", namespace="prim"))},
    "layout": {"layout": property(lambda self: ask(self, "layout", namespace="prim"))}}


def _chosen(name: str, method: Any) -> Any:
    """A method, or property, that asks the class about those instances that are to be asked about."""
    asking: Any = method.fget if isinstance(method, property) else method
    plain: Any = vars(Tensor)[name]
    reading: Any = plain.fget if isinstance(plain, property) else plain

    def told(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return (asking if name in getattr(self._a, "asked", ()) else reading)(self, *args, **kwargs)

    return property(told) if isinstance(method, property) else told


def let_answer(tensor: Tensor, policy: str) -> None:
    """From now on a tensor's class answers for it, unless the class has methods of its own for that."""
    if policy not in POLICIES:
        raise RuntimeError(f"expected one of {', '.join(sorted(POLICIES))} as the policy, not {policy!r}")
    cls = type(tensor)
    tensor._a.asked = frozenset(POLICIES[policy]) | getattr(tensor._a, "asked", frozenset())
    for name, method in POLICIES[policy].items():
        if getattr(cls, name) is getattr(Tensor, name):
            told = _chosen(name, method)
            TOLD.add(told)
            setattr(cls, name, told)
