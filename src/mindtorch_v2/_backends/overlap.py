"""Memory that an op would write to while it still reads there: PyTorch refuses this where both sides are dense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import may_share_memory, ndarray

# In-place ops that read an index or a mask after they have begun to write.
BY_MASK = frozenset({"masked_fill", "masked_scatter"})
BY_INDEX = frozenset({"_index_put_impl", "index_add", "index_copy", "index_fill", "index_reduce", "put", "scatter",
                      "scatter_add", "scatter_reduce"})


def refusal() -> RuntimeError:
    return RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                        "to a single memory location. Please clone() the tensor before performing the operation.")


def check_overlap(target: Any, source: Any) -> None:
    """Refuse to write where a part of the same memory is still read."""
    if target is source or type(target) is not ndarray or type(source) is not ndarray or (
            target.base is None and source.base is None):
        return  # the same, or two that own their memory
    if (target.size and source.size
            and (target.shape != source.shape or target.strides != source.strides
                 or target.__array_interface__["data"][0] != source.__array_interface__["data"][0])
            and may_share_memory(target, source) and dense(target) and dense(source)):
        raise refusal()


def check_apart(target: Any, source: Any) -> None:
    """Refuse to write where the same memory is still read, even if it is all of it."""
    if (type(target) is ndarray is type(source) and target.flags.forc and source.flags.forc
            and may_share_memory(target, source)):
        raise refusal()


def dense(array: Any) -> bool:
    """Whether an array fills the memory between its first and its last element."""
    return sum((n - 1) * s for n, s in zip(array.shape, array.strides)) == (array.size - 1) * array.itemsize


def apart(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place kernel; if it writes by index, one that refuses operands in the memory it writes to."""
    if name not in BY_MASK and name not in BY_INDEX:
        return kernel
    check = check_overlap if name in BY_MASK else check_apart

    @functools.wraps(kernel)
    def checked(target: Any, *rest: Any) -> Any:
        for value in rest:
            if type(value) is ndarray:
                check(target, value)
            elif isinstance(value, list):  # indices, one for each dimension
                for one in value:
                    if one is not None:
                        check(target, getattr(one, "_a", one))
        return kernel(target, *rest)

    return checked
