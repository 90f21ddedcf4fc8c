"""View ops for memory that is not shared, and their gradients."""

from __future__ import annotations

import math
from typing import Any

from ...._shape import wrap_dims
from ..arrays import NpuArray, contiguous, expanded, new, one_dim, viewed
from ..call import CALLS
from .places import cut
from .registry import composed
from .sums import total


@composed("_unsafe_view")
def unsafe_view(self: NpuArray, size: Any) -> NpuArray:
    """Another shape of the same memory, which the op hides from autograd."""
    shape = list(size)
    if -1 in shape:
        known = -math.prod(shape)
        shape[shape.index(-1)] = self.size // known if known else 0
    return viewed(contiguous(self), tuple(shape))


@composed("unsafe_split.Tensor")
def unsafe_split(self: NpuArray, size: int, dim: int) -> list[NpuArray]:
    """Pieces of a dimension that share the memory."""
    dim = one_dim(self, dim)
    extent = self.shape[dim]
    return [cut(self, dim, start, min(size, extent - start)) for start in range(0, extent, size)]


# Gradients of views: zeros with the gradient in the view's place.


def zeros(beside: NpuArray, shape: Any) -> NpuArray:
    out = new(beside, tuple(shape))
    CALLS.InplaceZero(out)
    return out


@composed("select_backward")
def select_backward(grad: NpuArray, sizes: Any, dim: int, index: int) -> NpuArray:
    """The gradient of one slice."""
    out = zeros(grad, sizes)
    dim = wrap_dims(dim, out.ndim)[0]
    slot = cut(out, dim, index % out.shape[dim], 1)
    shape, strides = (tuple([v for d, v in enumerate(values) if d != dim]) for values in (slot.shape, slot.strides))
    CALLS.InplaceCopy(slot.over(shape, strides, slot.offset, slot.dtype), grad)
    return out


@composed("slice_backward")
def slice_backward(grad: NpuArray, sizes: Any, dim: int, start: Any, end: Any, step: int) -> NpuArray:
    """The gradient of a stretch."""
    out = zeros(grad, sizes)
    dim = wrap_dims(dim, out.ndim)[0]
    begin, _, _ = slice(start, end, step).indices(out.shape[dim])
    if grad.size:
        strides = tuple([s * step if d == dim else s for d, s in enumerate(out.strides)])
        CALLS.InplaceCopy(out.over(grad.shape, strides, out.offset + begin * out.strides[dim], out.dtype), grad)
    return out


@composed("diagonal_backward")
def diagonal_backward(grad: NpuArray, sizes: Any, offset: int, dim1: int, dim2: int) -> NpuArray:
    """The gradient of a diagonal."""
    out = zeros(grad, sizes)
    first, second = wrap_dims((dim1, dim2), out.ndim)
    begin = out.offset + (offset * out.strides[second] if offset >= 0 else -offset * out.strides[first])
    rest = [d for d in range(out.ndim) if d not in (first, second)]
    strides = (*[out.strides[d] for d in rest], out.strides[first] + out.strides[second])
    if grad.size:
        CALLS.InplaceCopy(out.over(grad.shape, strides, begin, out.dtype), grad)
    return out


@composed("diag_embed")
def diag_embed(self: NpuArray, offset: int, dim1: int, dim2: int) -> NpuArray:
    """Matrices with an array on a diagonal."""
    *outer, length = self.shape
    first, second = wrap_dims((dim1, dim2), self.ndim + 1)
    sizes, rest = [length + abs(offset)] * (self.ndim + 1), iter(outer)
    for d in range(self.ndim + 1):
        if d not in (first, second):
            sizes[d] = next(rest)
    return diagonal_backward(self, sizes, offset, dim1, dim2)


@composed("trace")
def trace(self: NpuArray) -> NpuArray:
    """The sum of a diagonal."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    length = min(self.shape)
    return total(self.over((length,), (sum(self.strides),), self.offset, self.dtype), None, False, None)


@composed("trace_backward")
def trace_backward(grad: NpuArray, sizes: Any) -> NpuArray:
    """The gradient of that sum."""
    out, length = zeros(grad, sizes), min(sizes)
    if length:
        CALLS.InplaceCopy(out.over((length,), (sum(out.strides),), out.offset, out.dtype), expanded(grad, (length,)))
    return out
