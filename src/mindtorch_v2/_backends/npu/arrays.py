"""Arrays in NPU memory, and the new ones that kernels write into."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._shape import broadcast_shapes, numel, reduced_shape, wrap_dim, wrap_dims
from ..array import DeviceArray
from ..geometry import dense_strides, is_dense, is_row_major, row_major
from .call import BFLOAT16, CALLS, DTYPES
from .library import WATCH
from .memory import ALLOCATORS, allocator
from .native import LAUNCH
from .runtime import bind
from .stream import stream_of

Shape = tuple[int, ...]
BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
INT32 = np.dtype(np.int32)
FLOAT32 = np.dtype(np.float32)


class NpuArray(DeviceArray):
    """An array on an NPU."""

    __slots__ = ()


if LAUNCH is not None:
    LAUNCH.tell(NpuArray, WATCH, stream_of, bind, [(dtype, code, dtype.itemsize, dtype.kind == "f" or code == BFLOAT16)
                                                   for dtype, code in DTYPES.items()],
                tuple([vars(DeviceArray)[name] for name in ("memory", "shape", "strides", "dtype", "offset")]))

_SIZES: dict[tuple[Shape, int], tuple[Shape, int]] = {}
_LIKE: dict[tuple[Shape, Shape, int, int], tuple[Shape, int]] = {}
KEPT = 8192


def empty(shape: Shape, dtype: np.dtype, index: int) -> NpuArray:
    """New memory on a device, row-major."""
    item = dtype.itemsize
    known = _SIZES.get((shape, item))
    if known is None:
        if len(_SIZES) > KEPT:
            _SIZES.clear()
        known = _SIZES[shape, item] = (row_major(shape, item), numel(shape) * item)
    strides, nbytes = known
    memory = (ALLOCATORS.get(index) or allocator(index)).take(nbytes, stream_of(index).npu_stream)
    return NpuArray(memory, shape, dtype, strides)


def like(array: NpuArray, dtype: np.dtype | None = None) -> NpuArray:
    """New memory with the shape of an array and the order of its dimensions."""
    kind = array.dtype if dtype is None else dtype
    key = (array.shape, array.strides, array.dtype.itemsize, kind.itemsize)
    known = _LIKE.get(key)
    if known is None:
        if len(_LIKE) > KEPT:
            _LIKE.clear()
        strides = row_major(array.shape, kind.itemsize) if 0 in array.shape else dense_strides(array, kind.itemsize)
        known = _LIKE[key] = (strides, numel(array.shape) * kind.itemsize)
    strides, nbytes = known
    index = array.memory.device.index
    memory = (ALLOCATORS.get(index) or allocator(index)).take(nbytes, stream_of(index).npu_stream)
    return NpuArray(memory, array.shape, kind, strides)


def new(array: NpuArray, shape: Shape, dtype: np.dtype | None = None) -> NpuArray:
    """New memory on an array's device, in its dtype unless another is given."""
    return empty(tuple(shape), array.dtype if dtype is None else dtype, array.memory.device.index)


def spread(first: NpuArray, *others: Any, dtype: np.dtype | None = None) -> NpuArray:
    """New memory in the common shape of operands."""
    shape = first.shape
    if all(other.shape == shape or not other.shape for other in others):
        return like(first, dtype)
    return new(first, broadcast_shapes(shape, *[other.shape for other in others]), dtype)


def boolean(first: NpuArray, *others: Any) -> NpuArray:
    """New memory for the truth values of a relation between operands."""
    return spread(first, *others, dtype=BOOL)


def all_dims(array: NpuArray, dim: Any = None) -> Shape:
    """Dimensions to reduce: those given, or all."""
    return tuple(wrap_dims(dim if dim != () and dim != [] else None, array.ndim))


def reduced(array: NpuArray, dim: Any, keepdim: bool, dtype: np.dtype | None = None) -> NpuArray:
    """New memory for a reduction over dimensions."""
    return new(array, reduced_shape(array.shape, all_dims(array, dim), keepdim), dtype)


def one_dim(array: NpuArray, dim: int) -> int:
    """A dimension counted from the front; PyTorch's error for one that is not there."""
    return wrap_dim(dim, array.ndim)


# -- operands ----------------------------------------------------------------------------------------------------------


def filled(shape: Shape, dtype: np.dtype, index: int, value: Any) -> NpuArray:
    """New memory with one number in all elements."""
    made = empty(shape, dtype, index)
    CALLS.InplaceFillScalar(made, value)
    return made


def placed(value: Any, beside: NpuArray, dtype: np.dtype | None = None) -> NpuArray:
    """An operand on the device: itself, or the array that a number of the host becomes beside an array."""
    if isinstance(value, NpuArray):
        return value
    kind = (value.dtype if isinstance(value, np.ndarray) else beside.dtype) if dtype is None else dtype
    return filled((), kind, beside.memory.device.index, value)


def viewed(array: NpuArray, shape: Shape) -> NpuArray:
    """A row-major array in another shape."""
    return array.over(tuple(shape), row_major(shape, array.dtype.itemsize), array.offset, array.dtype)


def lifted(array: NpuArray, beside: NpuArray | None = None) -> NpuArray:
    """A number on the device as a 1-D array of one element, which index operators need; other arrays unchanged.

    An array without elements gets as many dimensions as the array beside it.
    """
    if beside is not None and array.ndim != beside.ndim and 0 in array.shape:
        return array.over((0,) * max(beside.ndim, 1), (array.dtype.itemsize,) * max(beside.ndim, 1), array.offset,
                          array.dtype)
    return array if array.shape else array.over((1,), (array.dtype.itemsize,), array.offset, array.dtype)


def expanded(array: NpuArray, shape: Shape) -> NpuArray:
    """An array repeated to a shape, without a copy."""
    if array.shape == shape:
        return array
    missing = len(shape) - array.ndim
    if missing < 0:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(array.shape)}")
    strides = [0] * missing
    for extent, own, step in zip(shape[missing:], array.shape, array.strides, strict=True):
        if extent != own and own != 1:
            raise RuntimeError(f"The size of tensor a ({extent}) must match the size of tensor b ({own})")
        strides.append(step if own == extent else 0)
    return array.over(shape, tuple(strides), array.offset, array.dtype)


def converted(array: NpuArray, dtype: np.dtype) -> NpuArray:
    """An array in a dtype; the array itself if it has that dtype."""
    if array.dtype == dtype:
        return array
    made = like(array, dtype)
    CALLS.InplaceCopy(made, array)
    return made


def contiguous(array: NpuArray) -> NpuArray:
    """An array in row-major order; the array itself if it has that order."""
    if is_row_major(array.shape, array.strides, array.dtype.itemsize):
        return array
    made = new(array, array.shape)
    CALLS.InplaceCopy(made, array)
    return made


def is_whole(array: NpuArray) -> bool:
    """Whether elements lie without gaps, in some order of dimensions."""
    return is_row_major(array.shape, array.strides, array.dtype.itemsize) or is_dense(array)
