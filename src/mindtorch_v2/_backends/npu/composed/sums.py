"""Sums, means, extremes, norms and running sums."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ..arrays import BOOL, INT64, NpuArray, all_dims, contiguous, converted, filled, like, new, one_dim, reduced, viewed
from ..call import CALLS, dtype_code
from .registry import COMPOSED, Kernel, composed
from .truth import isinf


def sum_dtype(self: NpuArray, dtype: Any) -> np.dtype:
    if dtype is not None:
        return dtype.np
    return INT64 if self.dtype.kind in "iub" else self.dtype


@composed("sum.dim_IntList")
def total(self: NpuArray, dim: Any, keepdim: bool, dtype: Any) -> NpuArray:
    """The sum over dimensions."""
    kind = sum_dtype(self, dtype)
    if dtype is not None:
        self = converted(self, kind)
    out = reduced(self, dim, keepdim, kind)
    CALLS.ReduceSum(self, all_dims(self, dim), keepdim, dtype_code(kind), out)
    return out


@composed("sum")
def total_of_all(self: NpuArray, dtype: Any) -> NpuArray:
    """The sum of all elements."""
    return total(self, None, False, dtype)


@composed("mean.dim")
def mean(self: NpuArray, dim: Any, keepdim: bool, dtype: Any) -> NpuArray:
    """The mean over dimensions."""
    kind = self.dtype if dtype is None else dtype.np
    if kind.kind in "iub":
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or "
                           "complex dtype. Got: " + {"int64": "Long", "int32": "Int", "bool": "Bool"}.get(
                               kind.name, kind.name))
    out = reduced(self, dim, keepdim, kind)
    CALLS.Mean(self, all_dims(self, dim), keepdim, dtype_code(kind), out)
    return out


@composed("mean")
def mean_of_all(self: NpuArray, dtype: Any) -> NpuArray:
    """The mean of all elements."""
    return mean(self, None, False, dtype)


@composed("argmax")
def argmax(self: NpuArray, dim: Any, keepdim: bool) -> NpuArray:
    """The position of the largest element."""
    return _position(CALLS.ArgMax, self, dim, keepdim)


@composed("argmin")
def argmin(self: NpuArray, dim: Any, keepdim: bool) -> NpuArray:
    """The position of the smallest element."""
    return _position(CALLS.ArgMin, self, dim, keepdim)


def _position(call: Kernel, self: NpuArray, dim: Any, keepdim: bool) -> NpuArray:
    if dim is None:
        flat = viewed(contiguous(self), (self.size,))
        out = new(self, (1,) * self.ndim if keepdim else (), INT64)
        call(flat, 0, False, viewed(out, ()))
        return out
    out = reduced(self, dim, keepdim, INT64)
    call(self, one_dim(self, dim), keepdim, out)
    return out


def _correction(correction: Any) -> Any:
    return 1 if correction is None else correction


def _warn_of_freedom(name: str, self: NpuArray, dim: Any, correction: float) -> None:
    if math.prod([self.shape[d] for d in all_dims(self, dim)]) - correction <= 0:
        warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                      "factor (input numel divided by output numel).", UserWarning, stacklevel=8)


@composed("std.correction")
def std(self: NpuArray, dim: Any, correction: Any, keepdim: bool, name: str = "std") -> NpuArray:
    """The standard deviation over dimensions."""
    whole = _correction(correction)
    _warn_of_freedom(name, self, dim, whole)
    if whole == int(whole):
        out = reduced(self, dim, keepdim)
        CALLS.Std(self, all_dims(self, dim), int(whole), keepdim, out)
        return out
    made = var(self, dim, correction, keepdim)
    CALLS.InplaceSqrt(made)
    return made


@composed("var.correction")
def var(self: NpuArray, dim: Any, correction: Any, keepdim: bool, name: str = "var") -> NpuArray:
    """The variance over dimensions."""
    whole = _correction(correction)
    dims = all_dims(self, dim)
    _warn_of_freedom(name, self, dim, whole)
    out = reduced(self, dim, keepdim)
    if whole in (0, 1):
        CALLS.Var(self, dims, bool(whole), keepdim, out)
        return out
    count = math.prod(self.shape[d] for d in dims)
    CALLS.Var(self, dims, False, keepdim, out)
    CALLS.InplaceMuls(out, count / max(count - whole, 0) if count > whole else math.inf)
    return out


@composed("var_mean.correction")
def var_mean(self: NpuArray, dim: Any, correction: Any, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    """Variance and mean."""
    return var(self, dim, correction, keepdim, "var_mean"), mean(self, dim, keepdim, None)


@composed("std_mean.correction")
def std_mean(self: NpuArray, dim: Any, correction: Any, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    """Standard deviation and mean."""
    return std(self, dim, correction, keepdim, "std_mean"), mean(self, dim, keepdim, None)


@composed("linalg_vector_norm")
def vector_norm(self: NpuArray, order: Any, dim: Any, keepdim: bool, dtype: Any) -> NpuArray:
    """The norm over dimensions."""
    kind = self.dtype if dtype is None else dtype.np
    out = reduced(self, dim, keepdim, kind)
    if (order < 0 or order == math.inf) and 0 in [self.shape[d] for d in all_dims(self, dim)]:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the "
                           "operation does not have an identity")
    CALLS.LinalgVectorNorm(self, order, all_dims(self, dim), keepdim, dtype_code(kind), out)
    return out


@composed("norm.ScalarOpt_dim")
def norm(self: NpuArray, p: Any, dim: Any, keepdim: bool) -> NpuArray:
    """The norm over dimensions, by its old name."""
    return vector_norm(self, 2 if p is None else p, dim, keepdim, None)


@composed("logsumexp")
def logsumexp(self: NpuArray, dim: Any, keepdim: bool) -> NpuArray:
    """Logarithm of a sum of exponentials, minus the largest so that none overflows."""
    dims = all_dims(self, dim)
    if any(self.shape[d] == 0 for d in dims):
        return filled(reduced(self, dim, keepdim).shape, self.dtype, self.memory.device.index, -math.inf)
    top = reduced(self, dim, True)
    CALLS.Amax(self, dims, True, top)
    infinite = isinf(top)
    CALLS.InplaceMaskedFillScalar(top, infinite, 0)  # infinity minus infinity would be NaN
    moved = like(self)
    CALLS.Sub(self, top, 1, moved)
    CALLS.InplaceExp(moved)
    summed = total(moved, dim, True, None)
    out = like(summed)
    CALLS.Log(summed, out)
    CALLS.InplaceAdd(out, top, 1)
    return out if keepdim else viewed(out, reduced(self, dim, False).shape)


@composed("cumsum")
def cumsum(self: NpuArray, dim: int, dtype: Any) -> NpuArray:
    """Running sums."""
    kind = sum_dtype(self, dtype)
    if dtype is not None:
        self = converted(self, kind)  # first: sums of integers are integers
    out = new(self, self.shape, kind)
    CALLS.Cumsum(self, one_dim(self, dim), dtype_code(kind), out)
    return out


@composed("aminmax")
def aminmax(self: NpuArray, dim: Any, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    """The smallest and the largest."""
    low, high = reduced(self, dim, keepdim), reduced(self, dim, keepdim)
    CALLS.Amin(self, all_dims(self, dim), keepdim, low)
    CALLS.Amax(self, all_dims(self, dim), keepdim, high)
    return low, high


@composed("count_nonzero")
def count_nonzero(self: NpuArray, dim: Any) -> NpuArray:
    """The number of elements that are not zero."""
    truth = like(self, BOOL)
    CALLS.NeScalar(self, 0, truth)
    return total(truth, dim, False, None)


COMPOSED["count_nonzero.dim_IntList"] = count_nonzero


@composed("nansum")
def nansum(self: NpuArray, dim: Any, keepdim: bool, dtype: Any) -> NpuArray:
    """The sum of elements that are not NaN."""
    if self.dtype.kind in "fV":
        none, known = new(self, self.shape, BOOL), new(self, self.shape)
        CALLS.NeTensor(self, self, none)
        CALLS.InplaceCopy(known, self)
        CALLS.InplaceMaskedFillScalar(known, none, 0)
        self = known
    return total(self, dim, keepdim, dtype)
