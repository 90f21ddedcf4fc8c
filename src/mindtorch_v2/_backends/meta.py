"""The meta device: shapes, strides and dtypes without memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import META, device
from .._shape import broadcast_shapes
from .array import DeviceArray, Memory
from .base import GENERIC, Device, register
from .geometry import dense_strides
from .memory_order import walking_order


class MetaArray(DeviceArray):
    """Geometry without contents."""

    __slots__ = ()

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype) -> MetaArray:
        """A row-major one."""
        return META_DEVICE.empty(tuple(shape), dtype, META)


def stand_in(value: Any) -> Any:
    """Readable zeros of the same shape, without memory, for kernels that are their own shape rule."""
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
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    if array.flags.c_contiguous or not array.transpose(order).flags.c_contiguous:
        return MetaArray.empty(array.shape, array.dtype)
    return MetaArray.empty(tuple([array.shape[d] for d in order]), array.dtype).transpose(np.argsort(order).tolist())


def regular(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of a kernel that refuses matrices of zeros: those of its arguments stand in as identities."""
    def stand(value: Any) -> Any:
        if isinstance(value, MetaArray) and value.ndim > 1 and value.dtype.kind in "fc":
            return np.broadcast_to(np.eye(*value.shape[-2:], dtype=value.dtype), value.shape)
        return stand_in(value)

    return lambda *arguments: as_meta(compute(*[stand(value) for value in arguments]))


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
    if op.cpu is None:
        return lambda first, *rest: first
    if rule == "data":
        return lambda *arguments: refuse(op)
    if rule == "same":
        if op.schema.arguments[0].type in ("Scalar", "int"):  # a number first: the kernel determines the dtype
            return lambda *arguments: broadcast(op, arguments)
        return lambda first, *rest: alike(first.shape, first.dtype, [first])
    if rule == "broadcast":
        return lambda *arguments: broadcast(op, arguments)
    if rule is not None:
        return lambda *arguments: rule(*arguments)
    return lambda *arguments: as_meta((op.cpu_full or op.cpu)(*[stand_in(a) for a in arguments]))


def broadcast(op: Any, arguments: tuple[Any, ...]) -> MetaArray:
    """Elementwise ops: the common shape, and the dtype that the kernel gives for single elements."""
    arrays = [a for a in arguments if isinstance(a, (MetaArray, np.ndarray))]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    probes = [np.ones((), a.dtype) if isinstance(a, (MetaArray, np.ndarray)) else a for a in arguments]
    return alike(shape, np.asarray((op.cpu_full or op.cpu)(*probes)).dtype, arrays)


def alike(shape: tuple[int, ...], dtype: np.dtype, arrays: list[Any]) -> MetaArray:
    """A result of an elementwise op, which lies in memory as its operands do."""
    if all(array.flags.c_contiguous for array in arrays):
        return MetaArray.empty(shape, dtype)
    steps = [[0] * (len(shape) - array.ndim) + [
        0 if extent == 1 != wanted else step
        for extent, step, wanted in zip(array.shape, array.strides, shape[len(shape) - array.ndim:])
    ] for array in arrays]
    order = walking_order(shape, steps)
    return MetaArray.empty(tuple([shape[d] for d in order]), dtype).transpose(np.argsort(order).tolist())


def refuse(op: Any) -> Any:
    """Raise an error: shapes that depend on data are unknown here."""
    raise NotImplementedError(
        f"aten::{op.name}: the output's shape depends on data, which tensors on device 'meta' do not have"
    )


class MetaDevice(Device):
    """Arrays whose memory is only counted. Copies and fills change nothing."""

    type = "meta"
    array_class = MetaArray
    indexed = has_data = False
    profiler_type = 14
    profiler_name = "Meta"

    def allocate(self, nbytes: int, where: device) -> Memory:
        return Memory(META, 0, nbytes)

    def from_host(self, array: np.ndarray, where: device, non_blocking: bool = False) -> MetaArray:
        return self.empty(array.shape, array.dtype, where, dense_strides(array, array.dtype.itemsize))

    def to_host(self, array: Any, non_blocking: bool = False) -> np.ndarray:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def copy(self, target: Any, source: Any, non_blocking: bool = False) -> Any:
        return target

    def fill(self, array: Any, value: Any) -> Any:
        return array

    def kernel(self, op: Any, form: str) -> Callable[..., Any] | None:
        """An op's shape rule instead of a kernel."""
        return None if op.key in GENERIC else kernel(op)


META_DEVICE = register(MetaDevice())
