"""Matrix products."""

from __future__ import annotations

from typing import Any

from ...._dispatch.promotion import pretty
from ...._dtype import FROM_NUMPY
from ..arrays import NpuArray, contiguous, converted, expanded, new, viewed
from ..call import CALLS
from ..settings import cube
from .registry import composed
from .sums import total


@composed("mm")
def mm(self: NpuArray, mat2: NpuArray) -> NpuArray:
    """Matrix product."""
    _matrices("self", self, mat2)
    out = new(self, (self.shape[0], mat2.shape[1]))
    if not self.shape[1]:
        CALLS.InplaceZero(out)
    elif out.size:
        CALLS.Mm(self, mat2, out, cube())
    return out


def _matrices(first: str, left: NpuArray, right: NpuArray) -> None:
    for name, matrix in ((first, left), ("mat2", right)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if left.shape[1] != right.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left.shape[0]}x{left.shape[1]} and "
                           f"{right.shape[0]}x{right.shape[1]})")
    if left.dtype != right.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {left.dtype.name} != "
                           f"{right.dtype.name}")


@composed("addmm")
def addmm(self: NpuArray, mat1: NpuArray, mat2: NpuArray, beta: Any, alpha: Any) -> NpuArray:
    """Matrix product and a summand."""
    _matrices("mat1", mat1, mat2)
    shape = (mat1.shape[0], mat2.shape[1])
    expanded(self, shape)  # raises if it does not fit
    out = new(mat1, shape)
    if out.size:
        CALLS.Addmm(self, mat1, mat2, beta, alpha, out, cube())
    return out


@composed("bmm")
def bmm(self: NpuArray, mat2: NpuArray) -> NpuArray:
    """Matrix product of each pair in a batch."""
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if self.ndim != 3 else "batch2 must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}].")
    out = new(self, (self.shape[0], self.shape[1], mat2.shape[2]))
    if not self.shape[2]:
        CALLS.InplaceZero(out)
    elif out.size:
        CALLS.BatchMatMul(self, mat2, out, cube())
    return out


@composed("baddbmm")
def baddbmm(self: NpuArray, batch1: NpuArray, batch2: NpuArray, beta: Any, alpha: Any) -> NpuArray:
    """Matrix products of a batch and a summand."""
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    out = new(batch1, shape)
    if out.size:
        CALLS.Baddbmm(expanded(self, shape), batch1, batch2, beta, alpha, out, cube())
    return out


@composed("mv")
def mv(self: NpuArray, vec: NpuArray) -> NpuArray:
    """Matrix times vector."""
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({self.shape[0]}), mat "
                           f"({'x'.join(map(str, self.shape))}), vec ({vec.shape[0] if vec.ndim else 0})")
    out = new(self, (self.shape[0],))
    CALLS.Mv(self, vec, out, cube())
    return out


@composed("dot", "vdot")
def dot(self: NpuArray, tensor: NpuArray) -> NpuArray:
    """Sum of products."""
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError("inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of "
                           "elements, but got {} and {} elements respectively".format(*self.shape, *tensor.shape,
                                                                                      *self.shape, *tensor.shape))
    if self.dtype != tensor.dtype:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{pretty(FROM_NUMPY[self.dtype])} and {pretty(FROM_NUMPY[tensor.dtype])}")
    products = new(self, self.shape)
    CALLS.Mul(self, tensor, products)
    return converted(total(products, None, False, None), self.dtype)


@composed("addmv")
def addmv(self: NpuArray, mat: NpuArray, vec: NpuArray, beta: Any, alpha: Any) -> NpuArray:
    """A matrix times a vector, and a summand."""
    if vec.ndim != 1 or mat.ndim != 2 or mat.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({mat.shape[0]}), mat ({'x'.join(map(str, mat.shape))}), vec "
                           f"({vec.size})")
    column = addmm(viewed(contiguous(expanded(self, mat.shape[:1])), (mat.shape[0], 1)), mat,
                   viewed(contiguous(vec), (vec.shape[0], 1)), beta, alpha)
    return viewed(column, mat.shape[:1])


@composed("addr")
def addr(self: NpuArray, vec1: NpuArray, vec2: NpuArray, beta: Any, alpha: Any) -> NpuArray:
    """The products of the elements of two vectors, and a summand."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D argument vec1 and vec2, but got {vec1.ndim}-D and {vec2.ndim}-D")
    return addmm(self, viewed(contiguous(vec1), (vec1.shape[0], 1)), viewed(contiguous(vec2), (1, vec2.shape[0])),
                 beta, alpha)
