"""Kernels of numerical helpers: parts of floats, norms of slices, segments of a dimension, grids of bins."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES
from ..._shape import wrap_dim

Array = Any


def frexp(a: Array) -> tuple[Array, Array]:
    """Mantissas and exponents; infinities and NaN have the exponent 0."""
    if a.dtype not in FLOAT_DTYPES or a.dtype.kind == "c":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    wide = a if a.dtype.kind == "f" else a.astype(np.float32)
    mantissa, exponent = np.frexp(wide)
    return np.asarray(mantissa).astype(a.dtype), np.where(np.isfinite(wide), exponent, 0).astype(np.int32)


def nonzero_static(a: Array, size: int, fill_value: int) -> Array:
    """The positions of the nonzero elements, cut or padded to a given number."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = np.argwhere(a)[:size] if a.ndim else np.zeros((min(int(bool(a)), size), 0), np.int64)
    made = np.full((size, a.ndim), fill_value, np.int64)
    made[: len(found)] = found
    return made


def hash_tensor(a: Array, dim: Any, keepdim: bool, mode: int) -> Array:
    """The exclusive or of the elements' bits, as 64-bit integers or double precision numbers."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if a.dtype.kind == "c":
        raise NotImplementedError("hash_tensor does not support complex tensors")
    wide = a.astype(np.float64 if a.dtype in FLOAT_DTYPES else np.int64).view(np.uint64)
    dims = (dim,) if isinstance(dim, int) else tuple(dim or ())
    axes = tuple(wrap_dim(d, a.ndim) for d in dims)
    if not a.size and not axes:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                           "reduction dim with the 'dim' argument.")
    for axis in axes:
        if a.ndim and not a.shape[axis]:
            raise IndexError(f"hash_tensor: Expected reduction dim {axis} to have non-zero size.")
    axes = axes or tuple(range(a.ndim))
    return np.bitwise_xor.reduce(wide, axes, keepdims=keepdim) if a.ndim else wide


def renorm(a: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Slices of a dimension whose norm is too large, scaled down to the largest norm allowed."""
    if a.dtype not in FLOAT_DTYPES:
        raise RuntimeError("renorm only supports floating-point dtypes")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if a.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {a.ndim} dimensions")
    at = wrap_dim(dim, a.ndim)
    others = tuple(d for d in range(a.ndim) if d != at)
    wide = a.astype(np.float32) if a.dtype.itemsize == 2 else a
    size = np.abs(wide)
    if math.isinf(p):
        norms = size.max(others, keepdims=True, initial=0)
    else:
        norms = (size ** p).sum(others, keepdims=True) ** (1 / p)
    factor = np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0).astype(size.dtype)
    return np.ascontiguousarray(wide * factor).astype(a.dtype, copy=False)


# -- segments --------------------------------------------------------------------------------------------------------

START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -math.inf, "amin": math.inf}
COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.fmax, "amin": np.fmin}


def _segment_of(lengths: Array, size: int) -> Array:
    """The global number of the segment of every entry, in rows; remaining entries are in an extra last one."""
    rows = lengths.reshape(-1, lengths.shape[-1])
    count = rows.shape[1]
    ends = np.cumsum(rows, 1)
    # The number of segments that have ended at or before each position.
    position = (ends[:, None, :] <= np.arange(size)[None, :, None]).sum(2)
    return position + np.arange(len(rows))[:, None] * (count + 1)


def _in_rows(data: Array, axis: int) -> Array:
    """The data with the leading dimensions in one, then the axis, then the rest in one."""
    lead = math.prod(data.shape[:axis])
    return data.reshape(lead, data.shape[axis], math.prod(data.shape[axis + 1:]))


def _entries(table: Array) -> Array:
    return table.reshape(table.shape[0] * table.shape[1], table.shape[2])


def segment_reduce(data: Array, reduce: str, lengths: Array, axis: int, initial: Any) -> Array:
    """Each segment reduced, from an initial value."""
    table = _in_rows(data, axis)
    count = lengths.shape[-1]
    start = START[reduce] if initial is None else initial
    into = np.full((table.shape[0] * (count + 1), table.shape[2]), start, data.dtype)
    where = _segment_of(lengths, table.shape[1])
    ufunc = {"amax": np.maximum, "amin": np.minimum}.get(reduce, COMBINE[reduce])
    ufunc.at(into, where.reshape(-1), _entries(table))
    made = into.reshape(table.shape[0], count + 1, table.shape[2])[:, :count]
    if reduce == "mean":
        sizes = lengths.reshape(-1, count)[..., None]
        made = np.where((sizes == 0) & (initial is None), np.nan, made / np.maximum(sizes, 1)).astype(data.dtype)
    return np.ascontiguousarray(made.reshape(*data.shape[:axis], count, *data.shape[axis + 1:]))


def _product_of_others(table: Array, value: Array, where: Array, count: int, initial: Any) -> Array:
    """For each entry the product of the others of its segment; a division tells it unless the entry is 0 or NaN."""
    zero, undefined = table == 0, np.isnan(table)
    if not (zero | undefined).any():
        return value / table

    def over_segments(ufunc: np.ufunc, entries: Array, start: float) -> Array:
        into = np.full((table.shape[0] * (count + 1), table.shape[2]), start, np.float64)
        ufunc.at(into, where.reshape(-1), _entries(entries))
        return into[where]

    regular = over_segments(np.multiply, np.where(zero | undefined, 1.0, table), initial)
    zeros, nans = over_segments(np.add, zero, 0.0) - zero, over_segments(np.add, undefined, 0.0) - undefined
    others = np.where(nans > 0, np.nan, np.where(zeros > 0, 0.0, regular))
    return np.where(zero | undefined, others, value / table)


def segment_reduce_backward(grad: Array, data: Array, output: Array, reduce: str, lengths: Array, axis: int,
                            initial: Any) -> Array:
    """The gradient of the data: spread over each segment, or given to the extreme elements in equal parts."""
    table = _in_rows(data, axis)
    count = lengths.shape[-1]
    where = _segment_of(lengths, table.shape[1])
    row = np.arange(table.shape[0])[:, None]
    inside = np.minimum(where - row * (count + 1), count - 1)
    covered = (where - row * (count + 1) < count)[..., None]
    slope = _in_rows(grad, axis)[row, inside]
    value = _in_rows(output, axis)[row, inside]
    if reduce == "mean":
        slope = slope / np.maximum(lengths.reshape(-1, count)[row, inside][..., None], 1)
    elif reduce == "prod":
        slope = slope * _product_of_others(table, value, where, count, 1.0 if initial is None else initial)
    elif reduce in ("amax", "amin"):
        chosen = ((table == value) | np.isnan(table)) & covered
        ties = np.zeros((table.shape[0] * (count + 1), table.shape[2]))
        np.add.at(ties, where.reshape(-1), _entries(chosen))
        slope = np.where(chosen, slope / np.maximum(ties[where], 1.0), 0.0)
    return np.where(covered, slope, 0.0).astype(data.dtype).reshape(data.shape)


# -- histograms ------------------------------------------------------------------------------------------------------


def _counted_by_search(points: Array, edges: Sequence[Array], weight: Any, density: bool) -> Array:
    """Counts between edges that do not ascend: the result of a binary search, as in PyTorch; NumPy refuses them."""
    inside = np.ones(len(points), bool)
    places = []
    for column, borders in enumerate(edges):
        values = points[:, column]
        inside &= (values >= borders[0]) & (values <= borders[-1])
        places.append(np.clip(np.searchsorted(borders, values, "right") - 1, 0, len(borders) - 2))
    shape = tuple(len(borders) - 1 for borders in edges)
    flat = np.ravel_multi_index([place[inside] for place in places], shape)
    weights = None if weight is None else weight[inside]
    counts = np.bincount(flat, weights, minlength=math.prod(shape)).astype(np.float64).reshape(shape)
    if density:
        volumes = functools.reduce(np.multiply.outer, [np.diff(borders) for borders in edges])
        counts = counts / volumes / counts.sum()
    return counts


def histogramdd(points: Array, bins: Sequence[Any], limits: Any, weight: Any,
                density: bool) -> tuple[Array, list[Array]]:
    """Counts in a grid of bins, and the edges."""
    pairs = None if limits is None else [tuple(limits[2 * i: 2 * i + 2]) for i in range(points.shape[1])]
    edges = []
    for column, wanted in enumerate(bins):
        if isinstance(wanted, np.ndarray):
            edges.append(wanted)
            continue
        values = points[:, column]
        low, high = pairs[column] if pairs else (values.min(initial=math.inf), values.max(initial=-math.inf))
        if not points.size and not pairs:
            low, high = 0.0, 1.0
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(np.linspace(low, high, wanted + 1).astype(points.dtype))
    if all((np.diff(one) >= 0).all() for one in edges):
        counts, _ = np.histogramdd(points, edges, density=density, weights=weight)
    else:
        counts = _counted_by_search(points, edges, weight, density)
    return counts.astype(points.dtype), edges
