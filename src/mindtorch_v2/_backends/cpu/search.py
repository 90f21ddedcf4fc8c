"""Searching and counting: unique elements, histograms, positions in sorted sequences, membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import pretty, promote_arrays
from ..._dtype import FROM_NUMPY, HALF_TYPES
from ..._shape import wrap_dim
from . import providers
from .reduce import INT64, refuse, wide
from .sort import stable_order

Array = Any
Unique = tuple[Array, Array, Array]
NOTHING = np.empty(0, INT64)


def _runs(fresh: Array) -> tuple[Array, Array]:
    """From marks where a run begins: the run's number for each place, and the places of the marks."""
    return np.cumsum(fresh, dtype=INT64) - 1, np.flatnonzero(fresh)


def _starts(changed: Array, count: int) -> Array:
    fresh = np.ones(count, bool)
    fresh[1:] = changed
    return fresh


def _lengths(begins: Array, count: int) -> Array:
    return np.diff(np.append(begins, count)).astype(INT64)


def _counted(flat: Array, return_inverse: bool, return_counts: bool) -> Unique | None:
    """The distinct integers by counting each, if they are close together."""
    low = int(flat.min())
    span = int(flat.max()) - low + 1
    if span > 4 * flat.size + 1024:
        return None
    places = flat.astype(INT64, copy=False) - low if low or flat.dtype != INT64 else flat
    counts = np.bincount(places, minlength=span)
    there = np.flatnonzero(counts)
    inverse = (np.cumsum(counts > 0, dtype=INT64) - 1).take(places) if return_inverse else NOTHING
    return ((there + low).astype(flat.dtype, copy=False), inverse,
            counts[there].astype(INT64) if return_counts else NOTHING)


@providers.direct("unique")
def unique(a: Array, in_order: bool, return_inverse: bool, return_counts: bool) -> Unique:
    """The distinct elements, sorted; every NaN is distinct."""
    refuse(a, "unique", "c")
    flat = a.reshape(-1)
    if flat.size and a.dtype.kind in "iu" and (found := _counted(flat, return_inverse, return_counts)) is not None:
        return found[0], found[1].reshape(a.shape) if return_inverse else NOTHING, found[2]
    if not return_inverse and a.dtype not in HALF_TYPES:
        ordered = np.sort(flat)
        _, begins = _runs(_starts(ordered[1:] != ordered[:-1], flat.size))
        return ordered[begins], NOTHING, _lengths(begins, flat.size) if return_counts else NOTHING
    order = stable_order(flat, 0)
    ordered = flat[order]
    number, begins = _runs(_starts(ordered[1:] != ordered[:-1], flat.size))
    inverse = NOTHING
    if return_inverse:
        inverse = np.empty(flat.size, INT64)
        inverse[order] = number
        inverse = inverse.reshape(a.shape)
    return ordered[begins], inverse, _lengths(begins, flat.size) if return_counts else NOTHING


def _rows(a: Array, dim: int) -> tuple[Array, int]:
    axis = wrap_dim(dim, a.ndim)
    moved = np.moveaxis(a, axis, 0) if a.ndim else a.reshape(1)
    if a.size == 0 and a.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return moved.reshape(moved.shape[0], -1 if a.size else 1), axis


def unique_dim(a: Array, dim: int, in_order: bool, return_inverse: bool, return_counts: bool) -> Unique:
    """The distinct slices along a dimension, in lexicographic order."""
    refuse(a, "unique_dim", "c")
    if not a.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if a.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied")
    rows, axis = _rows(a, dim)
    if not a.size:
        return a.copy(), NOTHING, NOTHING
    order = np.lexsort(wide(rows).T[::-1])
    ordered = rows[order]
    number, begins = _runs(_starts((ordered[1:] != ordered[:-1]).any(1), len(rows)))
    inverse = np.empty(len(rows), INT64)
    inverse[order] = number
    return (np.take(a, order[begins], axis), inverse if return_inverse else NOTHING,
            _lengths(begins, len(rows)) if return_counts else NOTHING)


def unique_consecutive(a: Array, return_inverse: bool, return_counts: bool, dim: int | None) -> Unique:
    """Runs of equal elements (or slices) reduced to one each."""
    if dim is None:
        flat = a.reshape(-1)
        number, begins = _runs(_starts(flat[1:] != flat[:-1], flat.size))
        return (flat[begins], number.reshape(a.shape) if return_inverse else NOTHING,
                _lengths(begins, flat.size) if return_counts else NOTHING)
    rows, axis = _rows(a, dim)
    if not a.size:
        return a.copy(), NOTHING, NOTHING
    number, begins = _runs(_starts((rows[1:] != rows[:-1]).any(1), len(rows)))
    return (np.take(a, begins, axis), number if return_inverse else NOTHING,
            _lengths(begins, len(rows)) if return_counts else NOTHING)


# -- histograms ----------------------------------------------------------------------------------------------------


@providers.direct("bincount")
def bincount(a: Array, weights: Array | None, minlength: int) -> Array:
    """How often each non-negative integer occurs, or the weights of its occurrences added up."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if a.dtype.kind not in "iu":
        refuse(a, "bincount_cpu", a.dtype.kind)
    if a.ndim != 1 or (a.size and a.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return np.bincount(a.astype(INT64, copy=False), minlength=minlength).astype(INT64, copy=False)
    if not a.size:
        return np.zeros(minlength, INT64)
    if weights.shape != a.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    total = np.bincount(a.astype(INT64), weights.astype(np.float64), minlength)
    return total.astype(np.float32 if weights.dtype == np.float32 else np.float64)


def _range(a: Array, low: float, high: float, name: str, margin: float = 1.0) -> tuple[float, float]:
    if low == high and a.size:
        low, high = float(a.min()), float(a.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return (low - margin, high + margin) if low == high else (low, high)


def _count(a: Array, bins: int, low: float, high: float, weight: Array | None) -> Array:
    """Occurrences per bin of equal width; the last bin includes its upper end."""
    flat = wide(a).reshape(-1)
    kind = flat.dtype.type
    inside = (flat >= kind(low)) & (flat <= kind(high))
    place = ((flat[inside] - kind(low)) * kind(bins) / (kind(high) - kind(low))).astype(INT64)
    place = np.minimum(place, bins - 1)
    return np.bincount(place, None if weight is None else weight.reshape(-1)[inside], bins)


def _check_bins(a: Array, bins: int, name: str) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    refuse(a, name, "biuc")


def _check_histogram(a: Array, weight: Array | None) -> None:
    if weight is not None and weight.shape != a.shape:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                           f"tensor excluding its innermost dimension, but got input with shape {[*a.shape, 1]} and "
                           f"weight with shape {list(weight.shape)}")


@providers.direct("histc")
def histc(a: Array, bins: int, low: Any, high: Any) -> Array:
    """A histogram of equal bins between two values, or between the extremes."""
    _check_bins(a, bins, "histogram_cpu")
    low, high = _range(wide(a), low, high, "torch.histc")
    return _count(a, bins, low, high, None).astype(a.dtype)


def histogram(a: Array, bins: int, between: Any, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """A histogram of equal bins, with the bins' edges."""
    _check_bins(a, bins, "histogramdd")
    if a.dtype.itemsize == 2:
        raise unsupported("histogramdd", a.dtype)
    low, high = between or (0, 0)
    _check_histogram(a, weight)
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for "
                           "dimension 0")
    # Without elements to take a range from, the range is 0 to 1.
    low, high = (0, 1) if not a.size and low == high else _range(a, low, high, "torch.histogram", 0.5)
    edges = np.linspace(low, high, bins + 1).astype(a.dtype)
    return _finish(_count(a, bins, low, high, weight), edges, density, a.dtype)


def histogram_edges(a: Array, edges: Array, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """A histogram with given edges."""
    refuse(a, "histogramdd", "biuc")
    _check_histogram(a, weight)
    if edges.ndim != 1:
        raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions "
                           "in the bins tensor for dimension 0")
    if not edges.size:
        raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the "
                           "bins tensor for dimension 0")
    flat = a.reshape(-1)
    place = np.searchsorted(edges, flat, side="right") - 1
    place = np.where(flat == edges[-1], edges.size - 2, place)
    inside = (place >= 0) & (place < edges.size - 1)
    counts = np.bincount(place[inside], None if weight is None else weight.reshape(-1)[inside], edges.size - 1)
    return _finish(counts, edges.copy(), density, a.dtype)


def _finish(counts: Array, edges: Array, density: bool, to: np.dtype) -> tuple[Array, Array]:
    counts = counts.astype(to)
    return (counts / counts.sum() / np.diff(edges) if density else counts), edges


# -- sorted sequences ----------------------------------------------------------------------------------------------


def searchsorted(sequence: Array, a: Array, out_int32: bool, right: bool, side: str | None,
                 sorter: Array | None) -> Array:
    """Where elements would be inserted to keep a sequence, or each row of several, sorted."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while "
                           "right was True")
    if sequence.ndim != 1:
        if not a.ndim:
            raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor "
                               f"dimension is 1, but we got boundaries tensor dim({sequence.ndim}) and input value's "
                               f"dim(0) numel({a.size})")
        if sequence.shape[:-1] != a.shape[:-1]:
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                "boundaries tensor and input value tensor must match, but we got boundaries tensor "
                f"{list(sequence.shape)} and input value tensor {list(a.shape)}")
    if not sequence.ndim:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
                           "dimension")
    if sorter is not None:
        if sorter.shape != sequence.shape:
            raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
                               f"tensor {list(sequence.shape)} and got sorter tensor {list(sorter.shape)}")
        if sorter.size and not 0 <= sorter.min() <= sorter.max() < sequence.shape[-1]:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        sequence = np.take_along_axis(sequence, sorter, -1)
    if sequence.dtype is not a.dtype:
        sequence, a = promote_arrays(sequence, a)
    if sequence.dtype.kind in "bc" and a.size:
        raise unsupported("searchsorted_out_cpu", sequence.dtype)
    sequence, a = wide(sequence), wide(a)
    to_right = right or side == "right"
    made = providers.native.search(sequence, a, to_right) if providers.searches() else None
    if made is not None:
        place = made
    elif sequence.ndim == 1:
        place = sequence.searchsorted(a, "right" if to_right else "left")
    else:
        place = _search_rows(sequence, a, to_right)
    return np.asarray(place).astype(np.int32 if out_int32 else INT64, copy=False)


def _search_rows(sequence: Array, a: Array, right: bool) -> Array:
    """Binary search of every row at once."""
    low = np.zeros(a.shape, INT64)
    count = sequence.shape[-1]
    high = np.full(a.shape, count, INT64)
    for _ in range(int(count).bit_length()):
        middle = (low + high) // 2
        value = np.take_along_axis(sequence, np.minimum(middle, count - 1), -1)
        onward = (~(value > a) if right else ~(value >= a)) & (low < high)
        low = np.where(onward, middle + 1, low)
        high = np.where(onward, high, middle)
    return low


def bucketize(a: Array, boundaries: Array, out_int32: bool, right: bool) -> Array:
    """The bucket of each element between boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, a, out_int32, right, None, None)


def isin(elements: Array, among: Array, assume_unique: bool, invert: bool) -> Array:
    """Whether each element is among others; NaN never is."""
    for one in (elements, among):
        if one.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {pretty(FROM_NUMPY[one.dtype])}")
    if elements.dtype != among.dtype:
        elements, among = promote_arrays(elements, among)
    if FROM_NUMPY[elements.dtype].np in HALF_TYPES:
        elements, among = wide(elements), wide(among)
    return np.isin(elements, among, assume_unique=assume_unique, invert=invert).reshape(elements.shape)
