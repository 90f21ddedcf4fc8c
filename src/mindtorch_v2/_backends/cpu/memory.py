"""Taking memory, filling it and copying, as steps: kernels that do one of these call it from here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY
from ..._memory_format import contiguous_format

Array = Any
new_array = np.empty
new_array_like = np.empty_like


def _strides(a: Array) -> tuple[int, ...]:
    item = a.dtype.itemsize
    return tuple(s // item for s in a.strides)


@step("aten::empty", "memory_format", lambda size, dtype: (size, FROM_NUMPY[dtype], None, None, None, None))
def empty(size: tuple[int, ...], dtype: np.dtype) -> Array:
    """Uninitialised memory in row-major order."""
    return new_array(size, dtype)


@step("aten::empty_strided", "", lambda like, dtype: (like.shape, _strides(like), FROM_NUMPY[dtype], None, None, None))
def empty_strided(like: Array, dtype: np.dtype) -> Array:
    """Uninitialised memory in the order of another array's."""
    return new_array(like.shape, dtype) if like.ndim < 2 else new_array_like(like, dtype, "K", False)


@step("aten::fill_", "Scalar")
def fill_(target: Array, value: Any) -> Array:
    """Every element set to a number."""
    target.fill(value)
    return target


@step("aten::zero_")
def zero_(target: Array) -> Array:
    """Every element set to 0."""
    target.fill(0)
    return target


def copy_into(target: Array, source: Array) -> Array:
    """`target[...] = source`. Complex loses its imaginary part, floats truncate, as a C cast does."""
    kind = target.dtype.kind
    if source.dtype.kind == "c" and kind != "c":
        source = source.real
    if kind in "iu" and target.dtype.itemsize < 8 and FROM_NUMPY[source.dtype].is_floating_point:
        # Through int64: NumPy's direct cast of out-of-range values depends on the machine.
        source = source.astype(np.int64)
    target[...] = source
    return target


copy_ = step("aten::copy_", "", lambda target, source: (target, source, False))(copy_into)


@step("aten::empty_like", "", lambda like, dtype: (like, FROM_NUMPY[dtype], None, None, None, None))
def empty_like(like: Array, dtype: np.dtype) -> Array:
    """Memory in the shape of an array and the order of its dimensions."""
    return empty_strided(like, dtype)


@step("aten::empty_like", "", lambda like, dtype: (like, FROM_NUMPY[dtype], None, None, None, None))
def empty_like_contiguous(like: Array, dtype: np.dtype) -> Array:
    """Memory in the shape of an array, in row-major order."""
    return empty(like.shape, dtype)


@step("aten::zeros", "", lambda size, dtype: (size, FROM_NUMPY[dtype], None, None, None))
def zeros(size: tuple[int, ...], dtype: np.dtype) -> Array:
    """Zeros."""
    return zero_(empty(tuple(size), dtype))


@step("aten::zeros_like", "", lambda like: (like, None, None, None, None, None))
def zeros_like(like: Array) -> Array:
    """Zeros in the shape of an array, in row-major order."""
    return zero_(empty_like_contiguous(like, like.dtype))


@step("aten::clone", "", lambda a: (a, contiguous_format))
def clone_step(a: Array) -> Array:
    """A copy in row-major order."""
    return copy_(empty_like_contiguous(a, a.dtype), a)


@step("aten::clone", "", lambda a: (a, None))
def preserving_clone_step(a: Array) -> Array:
    """A copy with the same order of dimensions."""
    return copy_(empty_strided(a, a.dtype), a)


@step("aten::contiguous", "", lambda a: (a, contiguous_format))
def contiguous_step(a: Array) -> Array:
    """A copy in row-major order, for what is not in it."""
    return clone_step(a)


def to_copy(a: Array, dtype: np.dtype) -> Array:
    """A copy in a dtype, with the same order of dimensions."""
    return copy_(empty_strided(a, dtype), a)


_to_copy = step("aten::_to_copy", "", lambda a, dtype: (a, FROM_NUMPY[dtype], None, None, None, False, None))(to_copy)


@step("aten::to", "dtype", lambda a, dtype: (a, FROM_NUMPY[dtype], False, False, None))
def to(a: Array, dtype: np.dtype) -> Array:
    """An array in a dtype; itself if it has it already."""
    return a if a.dtype == dtype else _to_copy(a, dtype)
