"""The device of sparse arrays, and their kernels by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import sparse_shapes as shapes
from .base import BY_ARRAY, NEW, Device
from .sparse import (
    COO,
    CSC,
    CSR,
    SparseArray,
    coalesce,
    compressed,
    dense,
    product,
    transposed,
)

# Functions of an element that map zero to zero: they apply to the elements that are given, once each.
KEEP_ZERO = frozenset({
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "floor",
    "frac", "isinf", "isneginf", "isposinf", "log1p", "nan_to_num", "neg", "rad2deg", "relu", "round", "sgn", "sign",
    "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"})


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *rest: (lambda one: one.like(np.asarray(function(one.values, *rest))))(coalesce(a))


def _scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: SparseArray, b: Any, *rest: Any) -> SparseArray:
        if isinstance(b, SparseArray):
            if function is not np.multiply:
                raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
                                   f"{list(b.shape)} for divisor)")
            return shapes.common(a, b)
        if np.ndim(b) == 0:
            return a.like(np.asarray(function(a.values, b, *rest)))
        if len(a.indices) != a.ndim:
            raise NotImplementedError("products with a sparse tensor that has dense dimensions are not supported")
        return a.like(np.asarray(function(a.values, np.broadcast_to(b, a.shape)[tuple(a.indices)], *rest)))

    return run


def _added(a: SparseArray, b: Any, alpha: Any = 1) -> Any:
    if np.ndim(b) == 0 and not isinstance(b, SparseArray) and a.ndim:
        raise NotImplementedError("a sparse tensor plus a number would be dense: use to_dense()")
    if not isinstance(b, SparseArray):
        raise NotImplementedError("the sum of a sparse and a dense tensor is dense: put the dense one first")
    if a.shape != b.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                           f"{list(b.shape)}")
    if a.layout != COO or b.layout != COO:
        return compressed(_added(compressed(a, COO), compressed(b, COO), alpha), a.layout)
    values = np.concatenate([a.values, b.values * np.asarray(alpha, b.dtype)])
    both = SparseArray(np.concatenate([a.indices, b.indices], 1), values, a.shape, False)
    if not (_in_order(a) and _in_order(b)):
        return both
    merged = coalesce(both)
    merged.coalesced = a.coalesced and b.coalesced
    return merged


def _in_order(a: SparseArray) -> bool:
    """Whether positions are in row-major order, each once: then PyTorch merges the lists of two tensors."""
    if a.coalesced:
        return True
    flat = np.ravel_multi_index(tuple(a.indices), a.shape[:len(a.indices)]) if a.values.shape[0] else np.zeros(0)
    return bool((np.diff(flat) > 0).all())


def _subtracted(a: SparseArray, b: Any, alpha: Any = 1) -> Any:
    return _added(a, b, -alpha)


def _not_itself(a: SparseArray, b: Any) -> SparseArray:
    """Where a sparse array is NaN, which is how `isnan` asks."""
    if b is not a:
        raise NotImplementedError("comparing sparse tensors is not supported by this runtime; use to_dense()")
    return _elementwise(np.isnan)(a)


TABLE: dict[str, Callable[..., Any]] = {
    "mm": product, "mv": product, "_sparse_mm": product, "t": transposed, "transpose.int": transposed,
    "_coalesce": coalesce, "_to_sparse_csr": lambda a, *rest: compressed(a, CSR),
    "_to_sparse_csc": lambda a, *rest: compressed(a, CSC), "_to_sparse": lambda a, *rest: compressed(a, COO),
    "sum": lambda a, *rest: a.values.sum(),
    "_to_dense": lambda a, *rest: dense(a), "values": lambda a: a.values,
    "clone": lambda a, *rest: a.copy(), "mul.Tensor": _scaled(np.multiply), "div.Tensor": _scaled(np.true_divide),
    "mul.Scalar": _scaled(np.multiply), "add.Tensor": _added, "sub.Tensor": _subtracted,
    "pow.Tensor_Scalar": _elementwise(np.power), "norm.ScalarOpt_dim": shapes.norm,
    "sum.dim_IntList": shapes.summed, "select.int": shapes.select, "index_select": shapes.index_select,
    "unsqueeze": shapes.unsqueeze, "permute": shapes.permute, "cat": shapes.cat, "stack": shapes.stack,
    "narrow_copy": shapes.narrow, "sparse_mask": shapes.at_places, "ne.Tensor": _not_itself,
    "_conj": _elementwise(np.conj), "unbind.int": shapes.unbind, "any": lambda a: a.values.any(),
    "_to_copy": lambda a, dtype=None, *rest: a.copy() if dtype is None else a.astype(dtype.np),
}


class SparseDevice(Device):
    """The device of sparse arrays, which are in host memory; what they need of a device is their own."""

    type = "cpu"
    array_class = SparseArray
    indexed = False
    profiler_type = 0
    profiler_name = "CPU"

    def copy(self, target: SparseArray, source: Any, non_blocking: bool = False) -> SparseArray:
        if not isinstance(source, SparseArray):
            raise NotImplementedError("writing into a sparse tensor is not supported by this runtime")
        return target.take_over(source)

    def fill(self, array: SparseArray, value: Any) -> SparseArray:
        """No element is given any more: only zeros can be filled in."""
        if value != 0:
            raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend: "
                                      "positions without an element cannot hold a value; use to_dense()")
        return array.take_over(array.without_elements(array.dtype))

    def to_host(self, array: SparseArray, non_blocking: bool = False) -> np.ndarray:
        raise NotImplementedError("other devices have no sparse tensors: call to_dense() before the tensor goes there")

    def whole(self, array: SparseArray) -> Any:
        return array

    def clone(self, array: SparseArray, memory_format: Any = None) -> SparseArray:
        return array.copy()

    def convert(self, array: SparseArray, dtype: np.dtype) -> SparseArray:
        return array.astype(dtype)

    def kernel(self, op: Any, form: str) -> Callable[..., Any] | None:
        if op.key in KEEP_ZERO:
            return _elementwise(op.cpu_full or op.cpu)
        return TABLE.get(op.key)

    def view_kernel(self, op: Any) -> Callable[..., Any]:
        return TABLE.get(op.key) or self.missing(op, NEW)

    def missing(self, op: Any, form: str) -> Callable[..., Any]:
        raise NotImplementedError(f"Could not run 'aten::{op.key}' with arguments from the 'SparseCPU' backend: this "
                                  "runtime does not compute it on sparse tensors; use to_dense()")


BY_ARRAY[SparseArray] = SparseDevice()
