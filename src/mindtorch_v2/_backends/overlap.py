"""Writes to memory that an op still reads: PyTorch refuses them if both sides are dense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import may_share_memory, ndarray

from .array import DeviceArray
from .cpu.providers import around
from .geometry import span_bytes

# In-place ops that read an index or a mask after they have begun to write.
BY_MASK = frozenset({"masked_fill", "masked_scatter"})
BY_INDEX = frozenset({"_index_put_impl", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "put",
                      "scatter", "scatter_add", "scatter_reduce"})


def refusal() -> RuntimeError:
    return RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                        "to a single memory location. Please clone() the tensor before performing the operation.")


def check_shown_once(target: Any) -> None:
    """Raise an error if a write would hit memory that shows an element twice."""
    if target.size and any(step == 0 and count > 1 for step, count in zip(target.strides, target.shape)):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")


def check_overlap(target: Any, source: Any) -> None:
    """Raise an error if a write would hit a part of memory that is still read."""
    if target is source:
        return
    if type(target) is ndarray is type(source):
        if target.base is None and source.base is None:
            return  # both own their memory
        same_start = target.__array_interface__["data"][0] == source.__array_interface__["data"][0]
    elif isinstance(target, DeviceArray) and isinstance(source, DeviceArray):
        same_start = target.offset == source.offset
    else:
        return
    if (target.size and source.size
            and (target.shape != source.shape or target.strides != source.strides or not same_start)
            and overlapping(target, source) and dense(target) and dense(source)):
        raise refusal()


def overlapping(target: Any, source: Any) -> bool:
    """Whether two arrays, of the host or of one device, share memory."""
    if type(target) is ndarray is type(source):
        return may_share_memory(target, source)
    if not (isinstance(target, DeviceArray) and isinstance(source, DeviceArray)) or target.memory is not source.memory:
        return False
    ends = [array.offset + span_bytes(array.shape, array.strides, array.itemsize) for array in (target, source)]
    return bool(target.offset < ends[1] and source.offset < ends[0])


def check_apart(target: Any, source: Any) -> None:
    """Raise an error if a write would hit memory that is still read, even if it is all of it."""
    if target is source or (overlapping(target, source) and target.flags.forc and source.flags.forc):
        raise refusal()


def dense(array: Any) -> bool:
    """Whether an array fills the memory between its first and its last element."""
    return sum((n - 1) * s for n, s in zip(array.shape, array.strides)) == (array.size - 1) * array.itemsize


def apart(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place kernel; if it writes by index, it refuses operands in the memory that it writes to."""
    if name not in BY_MASK and name not in BY_INDEX:
        return kernel
    check = check_overlap if name in BY_MASK else check_apart

    def checking(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(target: Any, *rest: Any) -> Any:
            for value in rest:
                for one in value if isinstance(value, (list, tuple)) else (value,):  # indices, one for each dimension
                    array = getattr(one, "_a", one)
                    if isinstance(array, (ndarray, DeviceArray)):
                        check(target, array)
            return function(target, *rest)

        return checked

    return around(kernel, checking)
