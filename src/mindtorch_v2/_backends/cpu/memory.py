"""Allocating memory, filling it and copying, as steps: kernels that do one of these call it from here."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from ..._dispatch.observer import HOOK
from ..._dispatch.steps import step
from ..._dtype import FLOAT8, FROM_NUMPY, DefaultDtype, bfloat16, dtype
from ..._memory_format import CHANNELS_LAST_ORDER, contiguous_format
from ..._warn import warn_once
from ..geometry import is_dense, memory_order, ordered_strides
from . import elements, providers

Array = Any
new_array = np.empty
new_array_like = np.empty_like


def _strides(a: Array) -> tuple[int, ...]:
    item = a.dtype.itemsize
    return tuple(s // item for s in a.strides)


def in_order(size: tuple[int, ...], dtype: np.dtype, order: Any) -> Array:
    """Uninitialised memory without gaps, with dimensions in a given order from the outermost to the innermost."""
    steps = ordered_strides(size, order, dtype.itemsize)
    # `empty_like` gives memory that belongs to the array itself; a transposed array's does not.
    return new_array_like(np.lib.stride_tricks.as_strided(new_array(1, dtype), size, steps), dtype, "K", False)


STRIDED = 0  # PyTorch's number of the layout


@step("aten::empty", "memory_format", lambda size, dtype: (size, FROM_NUMPY[dtype], None, None, None, None))
def empty(size: tuple[int, ...], dtype: np.dtype) -> Array:
    """Uninitialised memory in row-major order."""
    return new_array(size, dtype)


@step("aten::empty", "memory_format", lambda size, kind: (size, kind, None, None, False, None))
def blank(size: tuple[int, ...], kind: dtype | None) -> Array:
    """Uninitialised memory for a program's request: in the default dtype unless another is given."""
    return new_array(size, (kind or DefaultDtype.value).np)


@step("aten::new_empty", "", lambda like, size, kind: (like, size, kind, None, None, False))
def new_empty(like: Array, size: tuple[int, ...], kind: dtype | None) -> Array:
    """Uninitialised memory for a program's request: in an array's dtype unless another is given."""
    return blank(size, kind or FROM_NUMPY[like.dtype])


def formatted(size: tuple[int, ...], dtype: np.dtype, memory_format: Any) -> Array:
    """Uninitialised memory in the order of a memory format."""
    order = CHANNELS_LAST_ORDER.get(memory_format)
    if order is None:
        return new_array(size, dtype)
    if len(size) != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format.name} format")
    return in_order(tuple(size), dtype, order)


empty_in_format = step("aten::empty", "memory_format", lambda size, dtype, memory_format: (
    size, FROM_NUMPY[dtype], None, None, None, memory_format))(formatted)


@step("aten::empty_strided", "", lambda like, dtype: (like.shape, _strides(like), FROM_NUMPY[dtype], STRIDED, None,
                                                       None), places=())
def empty_strided(like: Array, dtype: np.dtype) -> Array:
    """Uninitialised memory in another array's order."""
    if like.ndim < 2:
        return new_array(like.shape, dtype)
    if providers.native is not None and (made := providers.native.ordered_like(like, dtype.num)) is not None:
        return made
    if 0 in like.strides:
        return in_order(like.shape, dtype, memory_order(like))
    return new_array_like(like, dtype, "K", False)


@step("aten::new_empty_strided", "", lambda source, like: (source, like.shape, _strides(like), None, None, None, None),
      places=(0,))
def new_empty_strided(source: Array, like: Array) -> Array:
    """Uninitialised memory in another array's order, for values of an array."""
    return empty_strided(like, source.dtype)


@step("aten::fill_", "Scalar")
def fill_(target: Array, value: Any) -> Array:
    """Set every element to a number."""
    if providers.native is None or not providers.native.fill(target, value):
        target.fill(value)
    return target


@step("aten::zero_")
def zero_(target: Array) -> Array:
    """Set every element to 0."""
    if providers.native is None or not providers.native.fill(target, 0):
        target.fill(0)
    return target


def _saturated(source: Array) -> Array:
    """Values of float8_e4m3fn, which has no infinity: PyTorch stores the largest value instead."""
    return np.clip(source.astype(np.float32), -448.0, 448.0)


def _exponents(source: Array) -> Array:
    """Values of float8_e8m0fnu, powers of two: PyTorch drops the sign and stores the smallest value for zero."""
    return np.maximum(np.abs(source.astype(np.float32)), np.float32(2.0 ** -127))


# Conversions before values are stored in 8-bit types, about which NumPy's casts know less.
FITTED = {d.np: {"float8_e4m3fn": _saturated, "float8_e8m0fnu": _exponents}[d.name] for d in FLOAT8
          if d.name in ("float8_e4m3fn", "float8_e8m0fnu")}


def _whole(source: Array, kind: str) -> Array:
    """Floats without their fractions, before they are stored in fewer bits. A value that does not fit in 32 bits
    becomes their smallest value, as on x86; NumPy's direct cast depends on the machine. Unsigned targets take the low
    bits of 64.
    """
    if kind == "u":
        return source.astype(np.int64)
    if _X86:
        return source.astype(np.int32)
    wide = source.astype(np.int64)
    low = np.int64(-2**31)
    wide[(wide < low) | (wide >= -low)] = low
    return wide


_X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


FLOAT32, FLOAT16, BFLOAT16 = np.dtype(np.float32), np.dtype(np.float16), bfloat16.np
INT64, UINT8, BOOL = np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.bool_)
INT32, FLOAT64 = np.dtype(np.int32), np.dtype(np.float64)
# What the C kernels convert, by target and source.
CONVERSIONS = {
    (FLOAT16, FLOAT32): elements.TO_FLOAT16, (FLOAT32, FLOAT16): elements.OF_FLOAT16,
    (BFLOAT16, FLOAT32): elements.TO_BFLOAT16, (FLOAT32, BFLOAT16): elements.OF_BFLOAT16,
    (INT64, BOOL): elements.FLAGS_TO_INTEGERS, (INT64, UINT8): elements.BYTES_TO_INTEGERS,
    (FLOAT32, UINT8): elements.BYTES_TO_FLOAT32, (FLOAT32, BOOL): elements.FLAGS_TO_FLOAT32,
    (FLOAT64, FLOAT32): elements.FLOAT32_TO_FLOAT64, (FLOAT32, FLOAT64): elements.FLOAT64_TO_FLOAT32,
    (FLOAT32, INT64): elements.INTEGERS_TO_FLOAT32, (FLOAT64, INT64): elements.INTEGERS_TO_FLOAT64,
    (INT64, INT32): elements.INT32_TO_INTEGERS, (INT32, INT64): elements.INTEGERS_TO_INT32,
    (FLOAT32, INT32): elements.INT32_TO_FLOAT32, (BOOL, FLOAT32): elements.FLOAT32_TO_FLAGS,
    (BOOL, INT64): elements.INTEGERS_TO_FLAGS,
}
if _X86:
    # On other processors, the compiler converts numbers that do not fit differently.
    CONVERSIONS |= {(INT64, FLOAT32): elements.FLOAT32_TO_INTEGERS, (INT64, FLOAT64): elements.FLOAT64_TO_INTEGERS,
                    (UINT8, FLOAT32): elements.FLOAT32_TO_BYTES}


def copy_into(target: Array, source: Array) -> Array:
    """`target[...] = source`. Complex loses its imaginary part, except for flags; floats truncate, as a C cast does."""
    kind = target.dtype.kind
    if (change := CONVERSIONS.get((target.dtype, source.dtype))) is not None and target.shape == source.shape \
            and providers.conversions() and providers.native.convert(change, target, source):
        return target
    if target.dtype is source.dtype and providers.moves() and providers.native.copy(target, source):
        return target
    if source.dtype.kind == "c" and kind not in "cb":
        warn_once("Casting complex values to real discards the imaginary part")
        source = source.real
    if kind in "iu" and target.dtype.itemsize < 8 and FROM_NUMPY[source.dtype].is_floating_point:
        source = _whole(source, kind)
    if kind == "V" and target.dtype in FITTED and source.dtype != target.dtype:
        source = FITTED[target.dtype](source)
    target[...] = source
    return target


copy_ = step("aten::copy_", "", lambda target, source: (target, source, False))(copy_into)


@step("aten::empty_like", "", lambda like, dtype: (like, FROM_NUMPY[dtype], None, None, None, None))
def empty_like(like: Array, dtype: np.dtype) -> Array:
    """Memory with the shape of an array and the order of its dimensions."""
    return empty_strided(like, dtype)


@step("aten::empty_like", "", lambda like, kind: (like, kind, STRIDED, None, False, None))
def blank_like(like: Array, kind: dtype) -> Array:
    """Memory with the shape of an array and the order of its dimensions, for a program's request."""
    return empty_strided(like, kind.np)


@step("aten::empty_like", "", lambda like, dtype: (like, FROM_NUMPY[dtype], None, None, None, None))
def empty_like_contiguous(like: Array, dtype: np.dtype) -> Array:
    """Memory with the shape of an array, in row-major order."""
    return empty(like.shape, dtype)


@step("aten::empty_like", "", lambda like, dtype, memory_format: (like, FROM_NUMPY[dtype], None, None, None,
                                                                  memory_format))
def empty_like_in_format(like: Array, dtype: np.dtype, memory_format: Any) -> Array:
    """Memory with the shape of an array, in the order of a memory format."""
    return empty_in_format(like.shape, dtype, memory_format)


def empty_beside(a: Array, dtype: np.dtype) -> Array:
    """Memory for the result of an elementwise op, in the order of its operand."""
    return empty(a.shape, dtype) if a.flags.c_contiguous else empty_strided(a, dtype)


@providers.direct("copied_as")
def copied_as(source: Array, like: Array) -> Array:
    """A copy in another array's order."""
    return copy_(new_empty_strided(source, like), source)


@providers.direct("preserving_copy")
def preserving_copy(a: Array) -> Array:
    """A copy without gaps, with the same order of dimensions."""
    return copy_(empty_strided(a, a.dtype) if is_dense(a) else empty_like(a, a.dtype), a)


@step("aten::zeros", "", lambda size, dtype: (size, FROM_NUMPY[dtype], None, None, None))
def zeros(size: tuple[int, ...], dtype: np.dtype) -> Array:
    """Zeros."""
    return zero_(empty(tuple(size), dtype))


@step("aten::zeros_like", "", lambda like: (like, None, None, None, None, None))
def zeros_like(like: Array) -> Array:
    """Zeros with the shape of an array, in row-major order."""
    return zero_(empty_like_contiguous(like, like.dtype))


@step("aten::clone", "", lambda a: (a, contiguous_format))
@providers.direct("row_major_copy")
def clone_step(a: Array) -> Array:
    """A copy in row-major order."""
    return copy_(empty_like_contiguous(a, a.dtype), a)


preserving_clone_step = step("aten::clone", "", lambda a: (a, None))(preserving_copy)


@step("aten::contiguous", "", lambda a: (a, contiguous_format))
def contiguous_step(a: Array) -> Array:
    """A copy in row-major order, for an array in another order."""
    return clone_step(a)


def to_copy(a: Array, dtype: np.dtype, memory_format: Any = None) -> Array:
    """A copy in a dtype, with the same order of dimensions or that of a memory format."""
    made = empty_strided(a, dtype) if memory_format is None else empty_in_format(a.shape, dtype, memory_format)
    return copy_(made, a)


@step("aten::_to_copy", "", lambda a, dtype: (a, FROM_NUMPY[dtype], None, None, None, False, None))
def _to_copy(a: Array, dtype: np.dtype) -> Array:
    return to_copy(a, dtype)


@step("aten::to", "dtype", lambda a, dtype: (a, FROM_NUMPY[dtype], False, False, None))
@providers.direct("to")
def to(a: Array, dtype: np.dtype) -> Array:
    """An array in a dtype; the array itself if it has that dtype."""
    return a if a.dtype == dtype else _to_copy(a, dtype)


if providers.native is not None:
    # Kernels in C do these steps themselves, unless a recorder or a tap is on.
    providers.native.set_hook(HOOK)
    for _name, _step in (("empty", empty), ("empty_like", empty_like_contiguous), ("to", to),
                         ("zero_", zero_)):
        providers.native.set_step(_name, _step)
