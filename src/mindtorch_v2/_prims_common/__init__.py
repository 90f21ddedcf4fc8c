"""`torch._prims_common`: what PyTorch's tests and libraries ask about dtypes, dimensions and strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

from .._dispatch.promotion import result_dtype
from .._dtype import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    DefaultDtype,
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int64,
)
from .._outside import attributes
from .._shape import wrap_dim
from .._tensor import Tensor

TensorLike = Tensor
Number = (bool, int, float, complex)
NumberType = int | float | complex
_TYPES = {BOOL: bool, INTEGER: int, FLOAT: float, COMPLEX: complex}
_COMPLEX_OF = {bfloat16: complex64, float16: complex64, float32: complex64, float64: complex128}
_REAL_OF = {complex64: float32, complex128: float64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """What an elementwise op does to the common dtype of its arguments."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """What a reduction does to the dtype of its argument."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def dtype_to_type(dtype: DType) -> type:
    """The class of Python's numbers that elements of a dtype become.

    >>> import mindtorch_v2 as torch
    >>> dtype_to_type(torch.int8)
    <class 'int'>
    """
    return _TYPES[_checked(dtype).category]


def _checked(kind: Any) -> Any:
    if not isinstance(kind, dtype):
        raise AssertionError(f"Expected torch.dtype, got {type(kind)}")
    return kind


def is_boolean_dtype(dtype: DType) -> bool:
    """Whether elements are truth values."""
    return bool(_checked(dtype) == bool_)


def is_integer_dtype(dtype: DType) -> bool:
    """Whether elements are integers, and no truth values."""
    return bool(_checked(dtype).category == INTEGER)


def is_float_dtype(dtype: DType) -> bool:
    """Whether elements are real numbers."""
    return bool(_checked(dtype).is_floating_point)


def is_complex_dtype(dtype: DType) -> bool:
    """Whether elements are complex."""
    return bool(_checked(dtype).is_complex)


def is_grad_dtype(dtype: DType) -> bool:
    """Whether tensors of this dtype can have gradients."""
    return is_float_dtype(dtype) or is_complex_dtype(dtype)


def corresponding_real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of complex elements."""
    return _REAL_OF[dtype]


def corresponding_complex_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts hold these elements."""
    return _COMPLEX_OF[dtype]


def elementwise_dtypes(*args: Any,
                       type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[DType, DType]:
    """The dtype that an elementwise op computes in, and that of its result.

    >>> import mindtorch_v2 as torch
    >>> elementwise_dtypes(torch.ones(2).half(), 2, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    (torch.float32, torch.float16)
    """
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    given = [one for one in args if one is not None]
    wanted: Any = result_dtype([one._a for one in given if isinstance(one, Tensor)],
                               [one for one in given if not isinstance(one, Tensor)])
    if type_promotion_kind is kinds.BOOL_TO_LONG and wanted is bool_:
        wanted = int64
    if type_promotion_kind is kinds.INT_TO_FLOAT and wanted.category < FLOAT:
        wanted = DefaultDtype.value
    computed = float32 if wanted in (float16, bfloat16) and type_promotion_kind is not kinds.NO_OPMATH else wanted
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        return computed, bool_
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and wanted.category == COMPLEX:
        return computed, _REAL_OF[wanted]
    return computed, wanted


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front."""
    return wrap_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """One dimension or several, counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a new tensor; with `row_major=False` its matrices lie column by column."""
    sizes = [max(int(n), 1) for n in shape]
    strides = [math.prod(sizes[position + 1:]) for position in range(len(sizes))]
    if not row_major and len(strides) > 1:
        strides[-2:] = [1, max(int(shape[-2]), 1)]
    return tuple(strides)


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a tensor of one shape can be expanded to another."""
    return len(shape) <= len(desired) and all(
        have in (want, 1) for have, want in zip(reversed(shape), reversed(desired), strict=False))


__getattr__ = attributes("_prims_common", globals())
