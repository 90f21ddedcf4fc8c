"""Truth values: logic, comparisons of whole tensors, which of two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._dispatch.promotion import pretty, result_dtype
from ...._dtype import FROM_NUMPY
from ...._shape import broadcast_shapes, reduced_shape
from ..arrays import BOOL, NpuArray, all_dims, contiguous, converted, like, new, placed, spread, viewed
from ..call import CALLS
from .expressions import refuse_dtype
from .registry import COMPOSED, HOST, Kernel, composed

BYTE = np.dtype(np.uint8)


def negated(array: NpuArray) -> NpuArray:
    out = like(array, BOOL)
    CALLS.LogicalNot(array, out)
    return out


@composed("logical_or")
def logical_or(self: NpuArray, other: Any) -> NpuArray:
    """Whether either is true."""
    first, second = negated(self), negated(placed(other, self))
    out = spread(first, second)
    CALLS.LogicalAnd(first, second, out)
    return negated(out)


@composed("logical_xor")
def logical_xor(self: NpuArray, other: Any) -> NpuArray:
    """Whether one of two is true."""
    first, second = negated(self), negated(placed(other, self))
    out = spread(first, second)
    CALLS.NeTensor(first, second, out)
    return out


def _bitwise(name: str, operator: str, of_booleans: Kernel) -> None:
    """Bitwise operators, which are logic for truth values."""

    def kernel(self: NpuArray, *other: Any) -> NpuArray:
        if self.dtype == BOOL:
            return of_booleans(self, *other)
        if self.dtype.kind not in "iu":
            refuse_dtype(name.partition(".")[0], self)
        others = [placed(one, self) for one in other]
        out = spread(self, *others)
        getattr(CALLS, operator)(self, *others, out)
        return out

    COMPOSED[name] = kernel


def _and(self: NpuArray, other: Any) -> NpuArray:
    other = placed(other, self)
    out = spread(self, other)
    CALLS.LogicalAnd(self, other, out)
    return out


_bitwise("bitwise_not", "BitwiseNot", negated)
_bitwise("bitwise_and.Tensor", "BitwiseAndTensor", _and)
_bitwise("bitwise_or.Tensor", "BitwiseOrTensor", logical_or)
_bitwise("bitwise_xor.Tensor", "BitwiseXorTensor", logical_xor)


@composed("where.self")
def where(condition: NpuArray, self: Any, other: Any) -> NpuArray:
    """One of two by a condition."""
    dtype = result_dtype([self, other], []).np
    if condition.dtype not in (BOOL, BYTE):
        raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype "
                           f"{pretty(FROM_NUMPY[condition.dtype])}")
    condition = converted(condition, BOOL)
    self, other = converted(placed(self, condition), dtype), converted(placed(other, condition), dtype)
    out = new(condition, broadcast_shapes(condition.shape, self.shape, other.shape), dtype)
    CALLS.SWhere(condition, self, other, out)
    return out


@composed("equal")
def equal(self: NpuArray, other: NpuArray) -> bool:
    """Whether two have the same shape and elements."""
    if self.shape != other.shape:
        return False
    if not self.size:
        return True
    same, every = like(self, BOOL), new(self, (), BOOL)
    CALLS.EqTensor(self, other, same)
    CALLS.All(same, all_dims(same), False, every)
    return bool(HOST[0](every))




def is_nan(self: NpuArray) -> NpuArray:
    out = like(self, BOOL)
    CALLS.NeTensor(self, self, out)
    return out


@composed("isin.Tensor_Tensor")
def isin(elements: NpuArray, test_elements: NpuArray, assume_unique: bool, invert: bool) -> NpuArray:
    """Whether each element is among others: it is compared with all of them."""
    kind = result_dtype([elements, test_elements], []).np
    row = viewed(contiguous(converted(test_elements, kind)), (test_elements.size,))
    column = viewed(contiguous(converted(elements, kind)), (elements.size, 1))
    out = new(elements, elements.shape, BOOL)
    if not row.size or not elements.size:
        CALLS.InplaceZero(out)
    else:
        same = new(elements, (elements.size, row.size), BOOL)
        CALLS.EqTensor(column, row, same)
        CALLS.Any(same, (1,), False, viewed(out, (elements.size,)))
    return negated(out) if invert else out


def _reduced_truth(call: str) -> None:
    """Whether all or any elements are true. Bytes stay bytes, as in PyTorch."""

    def over(self: NpuArray, dims: tuple[int, ...], keepdim: bool) -> NpuArray:
        out = new(self, reduced_shape(self.shape, dims, keepdim), BOOL)
        getattr(CALLS, call)(self, dims, keepdim, out)
        return converted(out, BYTE) if self.dtype == BYTE else out

    def some(self: NpuArray, dim: Any, keepdim: bool) -> NpuArray:
        if dim is not None and not len(dim):  # no dimensions: each element by itself
            out = like(self, BOOL)
            CALLS.NeScalar(self, 0, out)
            return converted(out, BYTE) if self.dtype == BYTE else out
        return over(self, all_dims(self, dim), keepdim)

    name = call.lower()
    COMPOSED[name] = lambda self: over(self, all_dims(self), False)
    COMPOSED[f"{name}.dim"] = lambda self, dim, keepdim: over(self, all_dims(self, dim), keepdim)
    COMPOSED[f"{name}.dims"] = some


_reduced_truth("All")
_reduced_truth("Any")


@composed("isinf")
def isinf(self: NpuArray) -> NpuArray:
    """Neither finite nor NaN."""
    finite = like(self, BOOL)
    if self.dtype.kind in "iub":
        CALLS.InplaceZero(finite)
        return finite
    CALLS.IsFinite(self, finite)
    return logical_xor(negated(finite), is_nan(self))


@composed("isposinf")
def isposinf(self: NpuArray) -> NpuArray:
    """Whether it is infinite and positive."""
    out = like(self, BOOL)
    CALLS.EqScalar(self, math.inf, out)
    return out


@composed("isneginf")
def isneginf(self: NpuArray) -> NpuArray:
    """Whether it is infinite and negative."""
    out = like(self, BOOL)
    CALLS.EqScalar(self, -math.inf, out)
    return out
