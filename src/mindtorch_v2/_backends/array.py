"""Arrays in a device's memory: the host computes with their geometry and never reads the memory."""

from __future__ import annotations

import functools
import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._device import device
from .geometry import is_row_major, row_major

Shape = tuple[int, ...]


class Memory:
    """A block of a device's memory. It is released with the last array on it, in the way of the device's own class.

    `pointer` is an address on the device; the host only computes with it.
    """

    __slots__ = ("__weakref__", "device", "nbytes", "pointer")

    def __init__(self, where: device, pointer: int, nbytes: int) -> None:
        self.device = where
        self.pointer = pointer
        self.nbytes = nbytes


class Flags:
    """NumPy's `flags` of an array's geometry."""

    __slots__ = ("c_contiguous", "f_contiguous")
    writeable = True

    def __init__(self, shape: Shape, strides: Shape, itemsize: int) -> None:
        self.c_contiguous = is_row_major(shape, strides, itemsize)
        self.f_contiguous = is_row_major(shape[::-1], strides[::-1], itemsize)

    @property
    def forc(self) -> bool:
        """Without gaps, in row-major or column-major order."""
        return self.c_contiguous or self.f_contiguous


class DeviceArray:
    """A strided array in a device's memory: the value of `Tensor._a` if that is not a `numpy.ndarray`.

    Strides and offset are in bytes. Only the device reaches the elements (`base.Device`): by copies to the host and by
    kernels. If the host tries to read them, an error is raised.
    """

    __slots__ = ("__weakref__", "dtype", "memory", "offset", "shape", "strides")
    # NumPy must not treat it as an object.
    __array_ufunc__ = None

    def __init__(self, memory: Any, shape: Shape, dtype: np.dtype, strides: Shape | None = None,
                 offset: int = 0) -> None:
        self.memory = memory
        self.shape = shape
        self.dtype = dtype
        self.strides = row_major(shape, dtype.itemsize) if strides is None else strides
        self.offset = offset

    @property
    def device(self) -> device:
        return self.memory.device

    @property
    def data_ptr(self) -> int:
        """The address of the first element, on the device."""
        return self.memory.pointer + self.offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        return Flags(self.shape, self.strides, self.dtype.itemsize)

    def over(self, shape: Shape, strides: Shape, offset: int, dtype: np.dtype) -> Any:
        """Another geometry over the same memory."""
        return type(self)(self.memory, shape, dtype, strides, offset)

    def whole(self) -> Any:
        """All of the memory, as bytes."""
        return self.over((self.memory.nbytes,), (1,), 0, BYTE)

    def transpose(self, order: Sequence[int]) -> Any:
        """The dimensions in another order."""
        return self.over(tuple([self.shape[d] for d in order]), tuple([self.strides[d] for d in order]), self.offset,
                         self.dtype)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"can't convert {self.device.type} device type tensor to numpy. Use Tensor.cpu() to copy the "
                        "tensor to host memory first.")

    def __len__(self, *args: Any) -> int:
        raise TypeError(f"the host cannot look into an array on {self.device}")

    __iter__ = __getitem__ = __setitem__ = __bool__ = __float__ = __int__ = __len__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape} {self.dtype} on {self.device}>"


BYTE = np.dtype(np.uint8)


# -- views ---------------------------------------------------------------------------------------------------------
# View kernels are arithmetic on shapes and strides, which NumPy does on any address. They get an array of the same
# geometry over pages that are reserved but empty; the returned array shows how the view lies in the memory.


@functools.cache
def _pages(bits: int) -> mmap.mmap:
    """Address space of this many bits that is never written, and so takes no memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, 1 << bits, flags=flags, prot=mmap.PROT_READ)


@functools.lru_cache(1024)
def _room(size: int) -> np.ndarray:
    """This many read-only bytes."""
    return np.frombuffer(_pages(max(16, size.bit_length())), BYTE, max(size, 1))


def phantom(array: DeviceArray) -> np.ndarray:
    """An array of the same geometry without meaningful contents."""
    return np.ndarray(array.shape, array.dtype, _room(array.memory.nbytes), array.offset, array.strides)


def flat_bytes(array: np.ndarray) -> np.ndarray:
    """The memory of an array that owns it, as bytes."""
    if not array.flags.c_contiguous:
        # An owner is dense: some permutation of its dimensions is row-major.
        array = array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
    return array.reshape(-1).view(np.uint8)


def part(array: DeviceArray, index: Any) -> Any:
    """A run of the elements of a 1-D array, by a slice or a number."""
    if not isinstance(index, slice):
        index = slice(index, index + 1 or None)
    return seen_through(array, phantom(array)[index])


def seen_through(array: DeviceArray, made: np.ndarray) -> Any:
    """The view of `array` that corresponds to `made`, a view of its phantom."""
    if not made.size:
        return array.over(made.shape, made.strides, array.offset, made.dtype)
    owner = made
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if not isinstance(owner.base, (mmap.mmap, memoryview)):
        raise NotImplementedError(f"a view kernel has copied what it was to view (shape {array.shape}, strides "
                                  f"{array.strides}, as {made.shape})")
    start = made.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return array.over(made.shape, made.strides, start, made.dtype)


def view_kernel(op: Any) -> Any:
    """The kernel of a view op on any device: it touches no memory."""
    kernel = op.cpu_full or op.cpu

    def run(first: DeviceArray, *rest: Any) -> Any:
        made = kernel(phantom(first), *rest)
        if isinstance(made, (list, tuple)):
            return [seen_through(first, one) for one in made]
        return seen_through(first, made)

    return run
