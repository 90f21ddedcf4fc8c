"""Kernels that join, repeat, turn and shift arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.layouts import channels_last, is_channels_last, suggested_format
from ..._dispatch.promotion import promote_list
from ..._memory_format import contiguous_format
from ..._shape import as_numbers, wrap_dim, wrap_dims
from . import providers, view
from .indexing import contiguous
from .memory import copy_into, empty_like, formatted

Array = Any


@providers.direct("cat")
def cat(arrays: Sequence[Array], dim: int) -> Array:
    """Arrays joined along a dimension; empty vectors are skipped, whatever the other shapes."""
    if not arrays:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    first = arrays[0]
    kind, ndim = first.dtype, first.ndim
    row_major = True
    for array in arrays:
        if array.dtype is not kind or array.ndim != ndim or not ndim:
            break
        row_major = row_major and array.flags.c_contiguous
    else:
        try:
            return np.concatenate(arrays, dim) if row_major else concatenate(arrays, dim)
        except (ValueError, IndexError):
            pass  # the fault is found below
    for position, array in enumerate(arrays):
        if not array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    arrays = promote_list(list(arrays))
    kept = [array for array in arrays if array.shape != (0,)]
    if not kept:
        return np.empty((0,), arrays[0].dtype)
    first = kept[0]
    at = wrap_dim(dim, first.ndim)
    try:
        return concatenate(kept, at)
    except ValueError:
        raise cat_error(arrays, kept, at) from None


def concatenate(arrays: Sequence[Array], dim: int) -> Array:
    """Arrays joined in row-major order, or in the channels-last order if all of them have it.

    NumPy by itself would take the order of most of the arrays.
    """
    size = list(arrays[0].shape)
    size[dim] = sum(array.shape[dim] for array in arrays)
    memory_format = suggested_format(arrays[0])
    if any(suggested_format(array) is not memory_format for array in arrays[1:]):
        memory_format = contiguous_format
    return np.concatenate(arrays, dim, out=formatted(tuple(size), arrays[0].dtype, memory_format))


def cat_error(arrays: Sequence[Array], kept: Sequence[Array], dim: int) -> RuntimeError:
    """The error for the first array that does not fit the first one."""
    first = kept[0]
    for position, array in enumerate(arrays):
        if array.shape == (0,):
            continue
        if array.ndim != first.ndim:
            return RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for d, (wanted, got) in enumerate(zip(first.shape, array.shape, strict=True)):
            if d != dim and wanted != got:
                return RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {wanted} but got size "
                    f"{got} for tensor number {position} in the list."
                )
    return RuntimeError("torch.cat(): the tensors do not fit together")


def check_stack(arrays: Sequence[Array]) -> None:
    """All arrays to be stacked have one shape."""
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = arrays[0].shape
    for position, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )


def block_diag(arrays: Sequence[Array]) -> Array:
    """Matrices along the diagonal of zeros."""
    if not arrays:
        return np.empty((1, 0), np.float32)
    for position, array in enumerate(arrays):
        if array.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                               f"{position} has {array.ndim} dimensions")
    arrays = promote_list(list(arrays))
    blocks = [np.atleast_2d(array) for array in arrays]
    whole = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), arrays[0].dtype)
    row = column = 0
    for block in blocks:
        whole[row:row + block.shape[0], column:column + block.shape[1]] = block
        row += block.shape[0]
        column += block.shape[1]
    return whole


@providers.direct("flip")
def flip(a: Array, dims: Sequence[int]) -> Array:
    """Dimensions in reverse order."""
    dims = as_numbers(dims)
    if not dims:
        return a.copy()
    wrapped = wrap_dims(dims, a.ndim)
    key = [slice(None)] * a.ndim
    for dim in wrapped:
        key[dim] = slice(None, None, -1)
    return copy_into(empty_like(a, a.dtype), view.restrided_by_index(a, tuple(key))) if wrapped else a.copy()


def roll(a: Array, shifts: Any, dims: Any) -> Array:
    """Elements moved along dimensions, around the end."""
    moves = as_numbers(shifts)
    along = as_numbers(dims if dims is not None else ())
    if not moves:
        raise RuntimeError("`shifts` required")
    if not along and len(moves) == 1:
        return roll_one(a.reshape(-1), moves[0], 0).reshape(a.shape)
    if len(moves) != len(along):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(along)}")
    if not a.ndim:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    wrapped = tuple(wrap_dim(d, a.ndim) for d in along)
    rolled = a
    for move, dim in zip(moves, wrapped, strict=True):
        rolled = roll_one(rolled, move, dim)
    return channels_last(rolled) if is_channels_last(a) else rolled


def roll_one(a: Array, move: int, dim: int) -> Array:
    """Elements moved along one dimension, around the end."""
    if not a.size:
        return a.copy()
    cut = -move % a.shape[dim]
    lead = (slice(None),) * dim
    made = np.empty(a.shape, a.dtype)
    copy_into(made[(*lead, slice(0, a.shape[dim] - cut))], a[(*lead, slice(cut, None))])
    copy_into(made[(*lead, slice(a.shape[dim] - cut, None))], a[(*lead, slice(0, cut))])
    return made


def rot90(a: Array, k: int, dims: Sequence[int]) -> Array:
    """Two dimensions turned by quarters."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if a.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {a.ndim}")
    around = (wrap_dim(dims[0], a.ndim), wrap_dim(dims[1], a.ndim))
    if around[0] == around[1]:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return np.rot90(a, k, around).copy("K")


def repeat(a: Array, repeats: Sequence[int]) -> Array:
    """The whole array repeated along dimensions, new ones in front."""
    lead = len(repeats) - a.ndim
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * lead + a.shape
    sizes = [n * extent for n, extent in zip(repeats, shape, strict=True)]
    if min(repeats, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    return np.ascontiguousarray(np.tile(a, tuple(repeats))) if repeats else a.copy()


def repeat_positions(repeats: Array, output_size: int | None) -> Array:
    """Position i, `repeats[i]` times."""
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        names = {"float32": "Float", "float64": "Double"}
        name = names.get(repeats.dtype.name, repeats.dtype.name)
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{name}'")
    if repeats.size and int(repeats.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != int(repeats.sum()):
        raise RuntimeError("allocated size does not match required size")
    return np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)


def placed(window: Any) -> Any:
    """A kernel that writes `src` into a window of a copy."""

    def kernel(a: Array, src: Array, *where: Any) -> Array:
        whole = a.copy("K")
        target = window(whole, *where)
        if src.shape != target.shape:
            raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                               f"{list(src.shape)}, slice size = {list(target.shape)}")
        target[...] = src
        return whole

    return kernel


def narrow_copy(a: Array, dim: int, start: int, length: int) -> Array:
    """`length` entries of a dimension from `start`, as a copy."""
    if dim >= a.ndim > 0:
        raise RuntimeError(f"Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false. The "
                           f"dimension is {dim}, and there are {a.ndim}.")
    if length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({a.shape[dim]}).")
    start = view.narrow_start(a, dim, start, length)
    return contiguous(view.slice_dim(a, dim, start, start + length, 1)).copy()
