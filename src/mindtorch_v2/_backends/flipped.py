"""Arrays of the host that are read with a flipped sign: `conj()` of a tensor, and `imag` of that.

Such an array shares the memory of its source, so changes of either show in both. It has a class of its own, like a
device's array; no op on plain arrays looks for it. If it is an op's first operand, the kernel of `FlippedDevice` runs,
on plain arrays with the same values. Elsewhere NumPy's functions ask it for those, and a call that still fails runs
again on them (`_dispatch.explain`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import CPU
from .._dtype import dtype as DType
from .array import DeviceArray, Memory, flat_bytes, phantom, seen_through
from .base import BY_ARRAY, GENERIC, INPLACE, Device, refuse_twice
from .cpu import memory as host_memory
from .cpu.copy import copy_into, fill
from .cpu.view import address, owner

Shape = tuple[int, ...]


class HostMemory(Memory):
    """The memory that an array of the host is on."""

    __slots__ = ("bytes", "owner")

    def __init__(self, array: np.ndarray) -> None:
        self.owner = owner(array)
        self.bytes = flat_bytes(self.owner)
        super().__init__(CPU, address(self.owner), self.owner.nbytes)


class FlippedArray(DeviceArray):
    """Elements of the host's memory, conjugated, negated, or both."""

    __slots__ = ("conj", "neg")
    memory: HostMemory
    conj: bool
    neg: bool

    def over(self, shape: Shape, strides: Shape, offset: int, dtype: np.dtype) -> FlippedArray:
        """Another geometry over the same memory, read in the same way."""
        made = FlippedArray(self.memory, shape, dtype, strides, offset)
        made.conj, made.neg = self.conj, self.neg
        return made

    def plain(self) -> np.ndarray:
        """The memory without flipping, as a view."""
        return np.ndarray(self.shape, self.dtype, self.memory.bytes, self.offset, self.strides)

    def flip(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Values as they are read, from what is in memory; or the reverse."""
        if self.conj:
            values = np.conjugate(values, out=out)
        return np.negative(values, out=values if self.conj else out) if self.neg else values

    def values(self) -> np.ndarray:
        """A new array with the values as they are read."""
        plain = self.plain()
        return self.flip(plain, np.empty_like(plain))

    def astype(self, dtype: Any, copy: bool = True) -> np.ndarray:
        """The values as they are read, in another dtype."""
        return self.values().astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:  # type: ignore[override]
        """Called when it is an operand of a NumPy function that computes elements."""
        if any(isinstance(one, FlippedArray) for one in options.get("out", ())):
            return NotImplemented
        return getattr(ufunc, method)(*unflipped(inputs), **{k: unflipped(v) for k, v in options.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Called when it is an argument of another NumPy function."""
        return function(*unflipped(args), **{k: unflipped(v) for k, v in kwargs.items()})


def unflipped(value: Any) -> Any:
    """An argument with plain arrays instead of flipped ones."""
    if type(value) is FlippedArray:
        return value.values()
    if type(value) in (list, tuple):
        return type(value)([unflipped(one) for one in value])
    return value


def flipped(array: Any, conj: bool = False, neg: bool = False) -> Any:
    """A view of an array of the host that flips signs; flipped twice, it is a plain array."""
    if not conj and not neg:
        return array
    if type(array) is FlippedArray:
        conj, neg = conj != array.conj, neg != array.neg
        if not conj and not neg:
            return array.plain()
        made = array.over(array.shape, array.strides, array.offset, array.dtype)
    else:
        block = HostMemory(array)
        start = address(array) - block.pointer if array.size else 0
        made = FlippedArray(block, array.shape, array.dtype, array.strides, start)
    made.conj, made.neg = conj, neg
    return made


def plain(array: Any) -> Any:
    """The memory of a flipped array without flipping; other arrays unchanged."""
    return array.plain() if type(array) is FlippedArray else array


def is_conj(array: Any) -> bool:
    """Whether an array's elements are read as conjugates of what is in memory."""
    return type(array) is FlippedArray and array.conj


def is_neg(array: Any) -> bool:
    """Whether an array's elements are read as negatives of what is in memory."""
    return type(array) is FlippedArray and array.neg


def refuse_other_numbers(array: FlippedArray, key: str, rest: tuple[Any, ...]) -> None:
    """Raise an error if a view would show the memory as other numbers, for which flipping means something else."""
    if key == "view" and isinstance(rest[0], DType):
        what = "conjugate view tensors" if array.conj else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")
    if key == "view_as_real" and array.conj:
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors. Call resolve_conj() first, "
                           "which gives a copy that does not share memory with the original.")


class FlippedDevice(Device):
    """The device of flipped arrays, which are in host memory; kernels get plain arrays with the same values."""

    type = "cpu"
    array_class = FlippedArray
    indexed = False
    profiler_type = 0
    profiler_name = "CPU"

    def empty(self, shape: Shape, dtype: np.dtype, where: Any, strides: Shape | None = None) -> Any:
        return BY_ARRAY[np.ndarray].empty(shape, dtype, where, strides)

    def to_host(self, array: FlippedArray, non_blocking: bool = False) -> np.ndarray:
        return array.values()

    def copy(self, target: Any, source: Any, non_blocking: bool = False) -> Any:
        if type(target) is not FlippedArray:
            return copy_into(target, unflipped(source))
        refuse_twice(target)
        # In the target's dtype first: a real number needs no conjugate.
        values = host_memory.copy_into(np.empty(source.shape, target.dtype), unflipped(source))
        copy_into(target.plain(), target.flip(values, values))
        return target

    def as_strided(self, array: FlippedArray, shape: Shape, strides: Shape, offset: int = 0) -> FlippedArray:
        return array.over(tuple(shape), tuple(strides), offset, array.dtype)

    def whole(self, array: FlippedArray) -> np.ndarray:
        """The owner of the memory, as storages of plain arrays have it."""
        return array.memory.owner

    def fill(self, array: FlippedArray, value: Any) -> FlippedArray:
        one = fill(np.empty((), array.dtype), value)
        array.plain()[...] = array.flip(one)
        return array

    def kernel(self, op: Any, form: str) -> Callable[..., Any] | None:
        """The CPU's kernel, on plain arrays; in-place results are flipped back."""
        cpu = BY_ARRAY[np.ndarray].kernel(op, form)
        if cpu is None or op.key in GENERIC:
            return None
        if form != INPLACE:
            return lambda *arguments: cpu(*unflipped(arguments))

        def run(target: FlippedArray, *rest: Any) -> FlippedArray:
            values = target.values()
            return self.copy(target, cpu(values, *unflipped(rest)))

        return run

    def view_kernel(self, op: Any) -> Callable[..., Any]:
        if op.key in FLIPS:
            return FLIPS[op.key]
        kernel = op.cpu_full or op.cpu

        def run(array: FlippedArray, *rest: Any) -> Any:
            refuse_other_numbers(array, op.key, rest)
            made = kernel(phantom(array), *rest)
            if isinstance(made, (list, tuple)):
                return [seen_through(array, one) for one in made]
            return seen_through(array, made)

        return run

    def block(self, array: FlippedArray) -> None:
        """None: the block belongs to the plain array that owns it."""
        return

    def missing(self, op: Any, form: str) -> Callable[..., Any]:
        raise NotImplementedError(f"aten::{op.key} has no kernel for conjugate or negative views: call resolve_conj() "
                                  "or resolve_neg() first")


# The views that flip, by key.
FLIPS: dict[str, Callable[[Any], Any]] = {
    "_conj": lambda array: flipped(array, conj=True),
    "_neg_view": lambda array: flipped(array, neg=True),
}
BY_ARRAY[FlippedArray] = FlippedDevice()
