"""Kernels of gather and the scatter family: one index per element, along one dimension."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import stored_scalar
from ..._dispatch.steps import step
from ..._dtype import BOOL, FLOAT, FROM_NUMPY
from ..._shape import wrap_dim
from . import providers
from .indexing import add_slices
from .memory import to

Array = Any
INT64, FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)
# The C kernel's operations on elements that indices name.
TAKE, ADD_TO, PUT = range(3)
INDEX_DTYPES = (INT64, np.dtype(np.int32))
UNSIGNED = {np.dtype(np.int64): np.dtype(np.uint64), np.dtype(np.int32): np.dtype(np.uint32)}
# From this size on, one pass over the whole target is faster than adding element by element.
MANY = 4096
# From this size on, a slice is better added as a whole.
WIDE = 64
REDUCERS: dict[str, np.ufunc] = {"sum": np.add, "add": np.add, "mean": np.add, "prod": np.multiply,
                                 "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum}


def check_range(index: Array, extent: int, dim: int, error: type[Exception] = RuntimeError, prefix: str = "") -> None:
    """Check that every index names an existing position; negative ones are not allowed here."""
    if outside(index, extent):
        bad = int(index[(index < 0) | (index >= extent)].reshape(-1)[0])
        raise error(f"{prefix}index {bad} is out of bounds for dimension {dim} with size {extent}")


def outside(index: Array, extent: int) -> bool:
    """Whether some index is negative or too large: read as unsigned, negative ones are too large as well."""
    if not index.size:
        return False
    return int(np.maximum.reduce(index.view(UNSIGNED[index.dtype]), axis=None)) >= extent


def check_shapes(a: Array, dim: int, index: Array, src: Array | None) -> None:
    """PyTorch's conditions on the shapes and dtypes of scatter's operands."""
    if index.dtype not in INDEX_DTYPES and index.size:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src.dtype != a.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return
    if max(a.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    too_wide = any(index.shape[d] > a.shape[d] for d in range(min(a.ndim, index.ndim)) if d != dim)
    too_short = src is not None and any(n > m for n, m in zip(index.shape, src.shape, strict=False))
    if too_wide or too_short:
        more = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(a.shape)} apart from "
                           f"dimension {dim}{more}")


def cells(a_shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """The row-major position in an array of `a_shape` that each element of `index` names."""
    make = small_offsets if index.size <= MANY else offsets
    others, step = make(a_shape, dim, index.shape)
    place = index.astype(np.int64, copy=False)
    if step != 1:
        place = place * step
    return place + others


def offsets(a_shape: tuple[int, ...], dim: int, index_shape: tuple[int, ...]) -> tuple[Any, int]:
    """What the dimensions other than `dim` add to a position, and the distance between neighbours along `dim`."""
    others: Any = 0
    step = own = 1
    for d in range(len(index_shape) - 1, -1, -1):
        if d == dim:
            own = step
        else:
            part = np.arange(index_shape[d], dtype=np.int64) * step
            others = others + part.reshape((-1,) + (1,) * (len(index_shape) - 1 - d))
        step *= a_shape[d]
    return others, own


small_offsets = lru_cache(maxsize=64)(offsets)


def at_least_1d(a: Array) -> Array:
    """0-d arrays as arrays of one element, on the same memory."""
    return a if a.ndim else a.reshape(1)


@providers.direct("gather")
def gather(a: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    """`a[..., index, ...]` element by element along a dimension."""
    at = wrap_dim(dim, a.ndim)
    if not index.size:
        return np.empty(index.shape, a.dtype)
    if index.dtype not in INDEX_DTYPES:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if max(a.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    whole, chosen = at_least_1d(a), at_least_1d(to(index, INT64))
    for d in range(whole.ndim):
        if d != at and chosen.shape[d] > whole.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                f"{list(a.shape)} apart from dimension {at}"
            )
    if providers.along(whole, at, chosen):
        made = np.empty(chosen.shape, a.dtype)
        if providers.native.along(TAKE, whole, np.ascontiguousarray(chosen), made, at):
            return made.reshape(index.shape)
    check_range(chosen, whole.shape[at], at)
    if whole.flags.c_contiguous:
        found = whole.reshape(-1).take(cells(whole.shape, at, chosen))
    else:
        key = [chosen if d == at else np.arange(n).reshape((-1,) + (1,) * (chosen.ndim - 1 - d))
               for d, n in enumerate(chosen.shape)]
        found = whole[tuple(key)]
    return np.ascontiguousarray(found).reshape(index.shape)


def flat_target(a: Array) -> tuple[Array, bool]:
    """`a` as a vector, and whether that vector is a copy that must be written back."""
    return (a.reshape(-1), False) if a.flags.c_contiguous else (a.copy().reshape(-1), True)


def scatter_with(a: Array, dim: int, index: Array, src: Array, ufunc: np.ufunc | None, checked: bool = True) -> Array:
    """Write (without a ufunc) or combine `src`, an array or a number in one, at the named positions of `a`."""
    at = wrap_dim(dim, a.ndim)
    if checked:
        check_shapes(a, at, index, src)
    if not index.size:
        return a
    whole, chosen = at_least_1d(a), at_least_1d(to(index, INT64))
    source = src if src.shape == chosen.shape or not src.ndim else src[tuple(slice(0, n) for n in chosen.shape)]
    if ((ufunc is None or (ufunc is np.add and whole.dtype is FLOAT32)) and source.dtype is whole.dtype
            and providers.along(whole, at, chosen) and providers.native.along(
                PUT if ufunc is None else ADD_TO, whole, np.ascontiguousarray(chosen),
                source if not source.ndim else np.ascontiguousarray(source), at)):
        return a
    check_range(chosen, whole.shape[at], at)
    if not source.ndim:
        source = np.broadcast_to(source, chosen.shape)
    source = source.reshape(-1)
    flat, copied = flat_target(whole)
    place = cells(whole.shape, at, chosen).reshape(-1)
    if ufunc is None:
        flat[place] = source
    else:
        ufunc.at(flat, place, source)
    if copied:
        whole[...] = flat.reshape(whole.shape)
    return a


@providers.direct("scatter_value")
def scatter_value(a: Array, dim: int, index: Array, value: Any) -> Array:
    """Write a number at the named positions."""
    check_shapes(a, wrap_dim(dim, a.ndim), index, None)
    return scatter_with(a, dim, index, stored_scalar(value, a.dtype), None, False)


@providers.direct("scatter")
def scatter_src(a: Array, dim: int, index: Array, src: Array) -> Array:
    """Write `src` at the named positions."""
    return scatter_with(a, dim, index, src, None)


def _old_reducer(reduce: str) -> np.ufunc:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return REDUCERS[reduce]


def scatter_reduce_src(a: Array, dim: int, index: Array, src: Array, reduce: str) -> Array:
    """Add or multiply `src` at the named positions."""
    return scatter_with(a, dim, index, src, _old_reducer(reduce))


def scatter_reduce_value(a: Array, dim: int, index: Array, value: Any, reduce: str) -> Array:
    """Add or multiply a number at the named positions."""
    ufunc = _old_reducer(reduce)
    check_shapes(a, wrap_dim(dim, a.ndim), index, None)
    return scatter_with(a, dim, index, stored_scalar(value, a.dtype), ufunc, False)


@providers.direct("scatter_add")
def scatter_add(a: Array, dim: int, index: Array, src: Array) -> Array:
    """Add `src` at the named positions."""
    vector = _shared_index(a, dim, index, src)
    if vector is None:
        return scatter_with(a, dim, index, src, np.logical_or if a.dtype == np.bool_ else np.add)
    check_shapes(a, dim, index, src)
    check_range(vector, a.shape[dim], dim)
    add_slices(a, dim, vector, src)
    return a


scatter_add_step = step("aten::scatter_add_", "")(scatter_add)


def _shared_index(a: Array, dim: int, index: Array, src: Array) -> Array | None:
    """The vector that an expanded index repeats for wide slices of `a`, which are then added whole; otherwise None."""
    if (index.ndim < 2 or not index.size or not (index.ndim == a.ndim == src.ndim) or index.dtype != INT64
            or a.dtype == np.bool_):
        return None
    at = wrap_dim(dim, a.ndim)
    if at != dim or index.size < WIDE * index.shape[at] or any(
            index.strides[d] or not index.shape[d] == a.shape[d] == src.shape[d] for d in range(a.ndim) if d != at):
        return None
    return index[(0,) * at + (slice(None),) + (0,) * (a.ndim - 1 - at)]


def identity(reduce: str, dtype: np.dtype) -> Any:
    """The value that changes nothing under a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    kind = FROM_NUMPY[dtype]
    if kind.category == BOOL:
        return reduce == "amin"
    if kind.category == FLOAT:
        return -np.inf if reduce == "amax" else np.inf
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max


def scatter_reduce(a: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> Array:
    """Reduce `src`, and the old values if `include_self`, into the named positions."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    check_shapes(a, wrap_dim(dim, a.ndim), index, src)
    if a.dtype.kind == ("c" if reduce in ("amax", "amin") else "b" if reduce == "mean" else "-"):
        raise unsupported(f"scatter_gather_tensor_cpu_reduce_{reduce}", a.dtype)
    if not include_self:
        scatter_value(a, dim, index, identity(reduce, a.dtype))
    ufunc = REDUCERS[reduce]
    if a.dtype == np.bool_:
        ufunc = np.logical_and if reduce in ("prod", "amin") else np.logical_or
    scatter_with(a, dim, index, src, ufunc)
    if reduce == "mean":
        counts = np.full(a.shape, int(include_self), np.int64)
        scatter_with(counts, dim, index, np.ones(index.shape, np.int64), np.add)
        divide_by_counts(a, counts)
    return a


def divide_by_counts(a: Array, counts: Array) -> None:
    """Sums to means, in place; integers round down."""
    np.maximum(counts, 1, out=counts)
    if FROM_NUMPY[a.dtype].category >= FLOAT:
        a[...] = a / counts.astype(a.dtype)
    else:
        np.floor_divide(a, counts.astype(a.dtype), out=a)
