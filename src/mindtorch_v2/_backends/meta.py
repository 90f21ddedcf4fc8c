"""The meta device: shapes, strides and dtypes without memory.

A meta array wraps a NumPy array that has the right geometry over a single element. View kernels only do arithmetic on
strides, so they run on it as they are; it is never read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import META, device
from .._shape import broadcast_shapes
from .allocate import ALLOCATORS
from .device import KERNELS
from .transfer import ROUTES

as_strided = np.lib.stride_tricks.as_strided


class MetaArray:
    """Geometry without contents."""

    __slots__ = ("phantom",)
    device = META
    data_ptr = 0
    # NumPy must not treat it as an object array.
    __array_ufunc__ = None

    def __init__(self, phantom: np.ndarray) -> None:
        self.phantom = phantom

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype) -> MetaArray:
        """A row-major one."""
        strides, step = [], dtype.itemsize
        for extent in reversed(shape):
            strides.append(step)
            step *= max(extent, 1)
        return cls(as_strided(np.zeros(1, dtype), shape, strides[::-1]))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.phantom.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.phantom.strides

    @property
    def dtype(self) -> np.dtype:
        return self.phantom.dtype

    @property
    def ndim(self) -> int:
        return self.phantom.ndim

    @property
    def size(self) -> int:
        return self.phantom.size

    @property
    def nbytes(self) -> int:
        return self.phantom.nbytes

    @property
    def flags(self) -> Any:
        return self.phantom.flags

    def astype(self, dtype: np.dtype) -> MetaArray:
        """The same shape in another dtype."""
        return MetaArray.empty(self.shape, np.dtype(dtype))

    def copy(self) -> MetaArray:
        """There is nothing to copy."""
        return MetaArray.empty(self.shape, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writing has no effect."""


def stand_in(value: Any) -> Any:
    """Readable zeros of the same shape, without memory, for kernels whose shape rule is the kernel itself."""
    if isinstance(value, MetaArray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if isinstance(value, (list, tuple)) and any(isinstance(v, MetaArray) for v in value):
        return [stand_in(v) for v in value]
    return value


def as_meta(result: Any) -> Any:
    """Kernel results as meta arrays."""
    if isinstance(result, (tuple, list)):
        return type(result)(as_meta(r) for r in result)
    array = np.asarray(result)
    return MetaArray.empty(array.shape, array.dtype)


def kernel(op: Any) -> Callable[..., Any]:
    """The meta kernel of an op, after a check that no operand has data."""
    inner = rule_of(op)

    def checked(*arguments: Any) -> Any:
        for value in arguments:
            if isinstance(value, np.ndarray) and value.ndim:
                raise TypeError("an operand is not on the meta device")
        return inner(*arguments)

    return checked


def rule_of(op: Any) -> Callable[..., Any]:
    """An op's shape rule, or its CPU kernel on stand-ins."""
    rule = op.meta
    if op.view:
        return lambda first, *rest: phantom_view(op, first, rest)
    if op.cpu is None:
        return lambda first, *rest: first
    if rule == "data":
        return lambda *arguments: refuse(op)
    if rule == "same":
        return lambda first, *rest: MetaArray.empty(first.shape, first.dtype)
    if rule == "broadcast":
        return lambda *arguments: broadcast(op, arguments)
    if rule is not None:
        return lambda *arguments: rule(*arguments)
    return lambda *arguments: as_meta((op.cpu_full or op.cpu)(*[stand_in(a) for a in arguments]))


def phantom_view(op: Any, first: MetaArray, rest: tuple[Any, ...]) -> Any:
    """Run a view kernel on the phantom."""
    found = op.cpu(first.phantom, *rest)
    return [MetaArray(f) for f in found] if isinstance(found, (list, tuple)) else MetaArray(found)


def broadcast(op: Any, arguments: tuple[Any, ...]) -> MetaArray:
    """Elementwise ops: the common shape, and the dtype the kernel gives on single elements."""
    arrays = [a for a in arguments if isinstance(a, (MetaArray, np.ndarray))]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    probes = [np.ones((), a.dtype) if isinstance(a, (MetaArray, np.ndarray)) else a for a in arguments]
    return MetaArray.empty(shape, np.asarray((op.cpu_full or op.cpu)(*probes)).dtype)


def refuse(op: Any) -> Any:
    """Shapes that depend on data cannot be known."""
    raise NotImplementedError(
        f"aten::{op.name}: the output's shape depends on data, which tensors on device 'meta' do not have"
    )


def _no_data(array: Any) -> np.ndarray:
    raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def _from_host(array: np.ndarray, where: device) -> MetaArray:
    return MetaArray.empty(array.shape, array.dtype)


KERNELS[MetaArray] = kernel
ALLOCATORS["meta"] = lambda shape, dtype, where: MetaArray.empty(shape, dtype)
ROUTES["meta"] = (_from_host, _no_data)
