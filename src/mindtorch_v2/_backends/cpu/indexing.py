"""Kernels of advanced indexing: reading, writing and adding at positions given by arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.promotion import pretty
from ..._dtype import FROM_NUMPY
from ..memory_order import laid_out, walking_order
from . import providers

Array = Any
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
UINT8 = np.dtype(np.uint8)
EVERYTHING = slice(None)
ROUNDS = 4
# Slices with so few elements, or so few elements in total, are added element by element.
NARROW, FEW = 32, 16384
# Above this size, a mask is better converted to positions: NumPy's own loop branches for every element.
MANY = 4096
INDEX_DTYPES = frozenset((INT64, np.dtype(np.int32), BOOL, UINT8))


def contiguous(a: Array) -> Array:
    """The array in row-major order; NumPy's own helper would turn 0-d arrays into 1-d ones."""
    return a if a.flags.c_contiguous else a.copy()


def index_key(a: Array, indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """The NumPy key of a list of index arrays, where None stands for a whole dimension."""
    key: list[Any] = []
    dim = 0
    for given in indices:
        if given is None:
            key.append(EVERYTHING)
            dim += 1
            continue
        if given.dtype not in INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if given.dtype is not BOOL and given.dtype != UINT8:
            key.append(given)
            dim += 1
            continue
        if a.shape[dim:dim + given.ndim] != given.shape and dim + given.ndim <= a.ndim:
            wrong = next(d for d in range(given.ndim) if given.shape[d] != a.shape[dim + d])
            raise IndexError(
                f"The shape of the mask {list(given.shape)} at index {wrong} does not match the shape of the indexed "
                f"tensor {list(a.shape)} at index {dim + wrong}"
            )
        key.append(given if given.dtype is BOOL else given.astype(BOOL))
        dim += given.ndim
    if dim > a.ndim:
        raise IndexError(f"too many indices for tensor of dimension {a.ndim} (got {dim})")
    return tuple(key)


@providers.direct("index")
def index(a: Array, indices: Sequence[Array | None]) -> Array:
    """A copy of the elements at the given positions."""
    last = indices[-1]
    dim = len(indices) - 1
    if last is not None and last.dtype is INT64 and last.ndim and a.ndim > dim and a.flags.c_contiguous and (
        dim == 0 or all(i is None for i in indices[:-1])
    ):
        try:
            return a.take(last, dim)
        except IndexError:
            raise range_error(last, a.shape[dim], dim) from None
    key = index_key(a, indices)
    if len(key) == 1 and key[0].dtype is BOOL and key[0].ndim == a.ndim > 0:
        return chosen_by(key[0], a)
    try:
        found = a[key]
    except IndexError as error:
        raise index_error(error, indices) from None
    if all(type(part) is slice or not part.ndim for part in key):
        # NumPy reads 0-d index arrays as plain integers and returns a view, or a scalar.
        return np.array(found)
    return contiguous(found) if a.flags.c_contiguous else laid_out(found, found_order(a, key, found.shape))


def found_order(a: Array, key: tuple[Any, ...], shape: tuple[int, ...]) -> list[int]:
    """The dimensions of what `a[key]` found, from the outermost to the innermost in memory, as in PyTorch."""
    parts: list[Array | None] = []
    for part in key:
        if type(part) is slice:
            parts.append(None)
        else:
            parts += part.nonzero() if part.dtype is BOOL else [part]
    parts += [None] * (a.ndim - len(parts))
    taken = [dim for dim, part in enumerate(parts) if part is not None]
    arrays = np.broadcast_arrays(*[part for part in parts if part is not None])
    count = arrays[0].ndim
    first = taken[0] if taken[-1] - taken[0] == len(taken) - 1 else 0
    kept = [a.strides[dim] for dim, part in enumerate(parts) if part is None]
    source = [*kept[:first], *[0] * count, *kept[first:]]
    rest = len(shape) - first - count
    return walking_order(shape, [source, *([*[0] * first, *one.strides, *[0] * rest] for one in arrays)])


def chosen_by(mask: Array, a: Array) -> Array:
    """The elements where a mask of the same shape is set, as a vector."""
    if a.size < MANY or not (a.flags.c_contiguous and mask.flags.c_contiguous):
        return a[mask]
    return a.reshape(-1).take(np.flatnonzero(mask))


def positions(a: Array) -> Array:
    """The positions of all elements that are not 0, one row each."""
    found = providers.native.nonzero(a) if providers.native is not None else None
    return np.stack(a.nonzero()).T if found is None else found.T


def range_error(index: Array, extent: int, dim: int) -> IndexError:
    """The error for the first index that does not fit a dimension."""
    bad = int(index[(index < -extent) | (index >= extent)][0])
    return IndexError(f"index {bad} is out of bounds for dimension {dim} with size {extent}")


def index_error(error: IndexError, indices: Sequence[Array | None]) -> IndexError:
    """PyTorch's words for NumPy's complaint about index arrays."""
    text = str(error)
    if "broadcast" in text:
        shapes = ", ".join(str(list(i.shape)) for i in indices if i is not None)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    return IndexError(text.replace(" axis ", " dimension "))


def check_put(a: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> None:
    """Refuse values of another dtype, unless a mask says where a single value goes; arrays may be on any device."""
    if values.dtype != a.dtype and not (values.ndim == 0 and not accumulate and is_mask_only(indices)):
        raise RuntimeError("Index put requires the source and destination dtypes match, got "
                           f"{pretty(FROM_NUMPY[a.dtype])} for the destination and {pretty(FROM_NUMPY[values.dtype])} "
                           "for the source.")


@providers.direct("index_put")
def put(a: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Array:
    """Write, or add, values at the given positions of `a` itself."""
    if values.dtype != a.dtype:
        try:
            check_put(a, indices, values, accumulate)
        except RuntimeError as error:
            raise misfit(a, index_key(a, indices), values) or error from None
        values = values.astype(a.dtype)
    key = index_key(a, indices)
    try:
        if accumulate:
            add_at(a, key, values)
        elif not values.ndim and is_mask_only(indices):
            mask = key[0]
            np.copyto(a, values, where=mask.reshape(mask.shape + (1,) * (a.ndim - mask.ndim)))
        else:
            a[key] = values
    except IndexError as error:
        raise misfit(a, key, values) or index_error(error, indices) from None
    except ValueError as error:
        if "read-only" in str(error):
            raise
        raise misfit(a, key, values) or error from None
    return a


def misfit(a: Array, key: tuple[Any, ...], values: Array) -> RuntimeError | None:
    """The error for values whose shape is not that of `a[key]`, which PyTorch looks at before it reads the indices."""
    first = tuple(part if type(part) is slice or part.dtype is BOOL else np.zeros_like(part) for part in key)
    try:
        shape = a[first].shape
    except IndexError:
        return None
    return unfit(values, shape)


def unfit(values: Any, shape: tuple[int, ...]) -> RuntimeError | None:
    """The error for values that do not broadcast to the shape of what indices choose; arrays may be on any device."""
    try:
        if np.broadcast_shapes(values.shape, shape) == shape:
            return None
    except ValueError:
        pass
    return RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing "
                        f"result of shape {list(shape)}")


@providers.direct("index_put_copy")
def put_into_copy(a: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Array | None:
    """`put` into a copy, if that can be done at once."""
    return None


def is_mask_only(indices: Sequence[Array | None]) -> bool:
    """Whether a list of indices is one boolean mask from the first dimension on."""
    return len(indices) == 1 and indices[0] is not None and indices[0].dtype in (BOOL, UINT8)


def add_at(a: Array, key: tuple[Any, ...], values: Array) -> None:
    """`a[key] += values`, in which a position named several times receives every value."""
    if len(key) == 1 and key[0].dtype is BOOL:
        a[key] += values  # a mask names no position twice
        return
    arrays = [part for part in key if type(part) is not slice]
    if len(arrays) == 1 and arrays[0].dtype is not BOOL:
        index = arrays[0]
        dim = next(d for d, part in enumerate(key) if type(part) is not slice)
        shape = a.shape[:dim] + index.shape + a.shape[dim + 1:]
        if len(values.shape) > len(shape):
            values = values.reshape(values.shape[len(values.shape) - len(shape):])
        values = np.broadcast_to(values, shape)
        add_slices(a, dim, wrapped(index.reshape(-1), a.shape[dim], dim),
                   values.reshape((*a.shape[:dim], index.size, *a.shape[dim + 1:])))
        return
    if len(arrays) == a.ndim and all(part.dtype is not BOOL for part in arrays) and a.flags.c_contiguous:
        parts = np.broadcast_arrays(*(wrapped(part, a.shape[d], d) for d, part in enumerate(arrays)))
        cells = np.ravel_multi_index(parts, a.shape)
        while values.ndim > cells.ndim:
            values = values[0]
        np.add.at(a.reshape(-1), cells.reshape(-1), np.broadcast_to(values, cells.shape).reshape(-1))
        return
    np.add.at(a, key, values)


def wrapped(index: Array, extent: int, dim: int) -> Array:
    """Indices counted from the front, checked."""
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < -extent or high >= extent:
            bad = low if low < -extent else high
            raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {extent}")
        if low < 0:
            return np.where(index < 0, index + extent, index)
    return index


def add_slices(a: Array, dim: int, index: Array, source: Array) -> None:
    """Add `source`'s slices along `dim` to the slices of `a` named by a vector, which may repeat."""
    if not source.size:
        return
    if dim == 0 and a.ndim > 1 and index.dtype == np.int64 and providers.rows(a, source) and index.min() >= 0:
        providers.native.add_rows(a.reshape(len(a), -1), np.ascontiguousarray(index), source.reshape(len(source), -1))
        return
    if dim and index.dtype == np.int64 and providers.rows(a, source) and index.min() >= 0:
        outer, inner = math.prod(a.shape[:dim]), math.prod(a.shape[dim + 1:])
        providers.native.add_slices(a.reshape(outer, a.shape[dim], inner), np.ascontiguousarray(index),
                                    source.reshape(outer, source.shape[dim], inner))
        return
    rows = np.moveaxis(a, dim, 0) if dim else a
    added = np.moveaxis(source, dim, 0) if dim else source
    if index.size == 1:
        rows[index[0]] += added[0]
        return
    if rows.ndim == 1 and rows.flags.c_contiguous:
        np.add.at(rows, index, added)
        return
    inner = math.prod(a.shape[dim + 1:])
    if a.flags.c_contiguous and (source.size <= FEW or inner < NARROW):
        add_cell_by_cell(a, dim, index, source, inner)
        return
    order = index.argsort(kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if starts.size == index.size:
        rows[index] += added
        return
    # First the first mention of every slice, all at once, then the second…, then the rest one by one.
    mention = np.arange(index.size) - np.repeat(starts, np.diff(starts, append=index.size))
    for number in range(min(int(mention.max()) + 1, ROUNDS)):
        chosen = order[mention == number]
        rows[index[chosen]] += added[chosen]
    rest = order[mention >= ROUNDS]
    if rest.size:
        add_one_by_one(rows, index[rest], added[rest])


def add_cell_by_cell(a: Array, dim: int, index: Array, source: Array, inner: int) -> None:
    """`add_slices` for a contiguous array and narrow or few slices, with NumPy's loop for flat arrays."""
    cells = index if inner == 1 else index[:, None] * inner + np.arange(inner)
    outer = math.prod(a.shape[:dim])
    if outer > 1:
        cells = np.arange(0, a.size, inner * a.shape[dim]).reshape((-1,) + (1,) * cells.ndim) + cells
    np.add.at(a.reshape(-1), cells.reshape(-1), source.reshape(-1))


def add_one_by_one(rows: Array, index: Array, added: Array) -> None:
    """`np.add.at(rows, index, added)` on flat arrays, for which NumPy has a fast loop."""
    flat = rows.reshape(-1)  # a copy if `rows` is not contiguous
    width = flat.size // rows.shape[0]
    cells = index[:, None] * width + np.arange(width)
    np.add.at(flat, cells.reshape(-1), added.reshape(-1))
    if not rows.flags.c_contiguous:
        rows[...] = flat.reshape(rows.shape)
