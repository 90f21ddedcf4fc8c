"""Joining, masks, indices, tables of rows, padding and moving elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._deterministic import alert
from ...._dispatch.promotion import pretty, result_dtype, stored_scalar
from ...._dtype import FROM_NUMPY
from ...._shape import as_numbers, broadcast_shapes, wrap_dims
from ...cpu.indexing import check_put, unfit
from ...index_checks import copied_dim
from ...pixels import shuffled, unshuffled
from ..arrays import BOOL, INT64, NpuArray, contiguous, converted, empty, expanded, like, new, one_dim, placed, viewed
from ..call import CALLS
from .arithmetic import left_over
from .registry import COMPOSED, HOST, composed
from .sums import total


@composed("cat")
def cat(tensors: list[NpuArray], dim: int) -> NpuArray:
    """Joined along a dimension."""
    kind = result_dtype(tensors, []).np
    given = [converted(t, kind) for t in tensors if t.shape != (0,)] or [converted(tensors[0], kind)]
    first = given[0]
    dim = one_dim(first, dim)
    for i, each in enumerate(given):
        if each.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {each.ndim}")
        for d, (a, b) in enumerate(zip(first.shape, each.shape, strict=True)):
            if d != dim and a != b:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got "
                                   f"size {b} for tensor number {i} in the list.")
    shape = tuple([sum(t.shape[dim] for t in given) if d == dim else n for d, n in enumerate(first.shape)])
    out = new(first, shape)
    CALLS.Cat(given, dim, out)
    return out


@composed("stack")
def stack(tensors: list[NpuArray], dim: int) -> NpuArray:
    """Joined along a new dimension."""
    kind = result_dtype(tensors, []).np
    tensors = [converted(each, kind) for each in tensors]
    first = tensors[0]
    for i, each in enumerate(tensors):
        if each.shape != first.shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 "
                               f"and {list(each.shape)} at entry {i}")
    dim = wrap_dims(dim, first.ndim + 1)[0]
    out = new(first, (*first.shape[:dim], len(tensors), *first.shape[dim:]))
    CALLS.Stack(tensors, dim, out)
    return out


def _truth(mask: NpuArray) -> None:
    if mask.dtype != BOOL:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{pretty(FROM_NUMPY[mask.dtype]).lower()}")


@composed("masked_fill.Scalar/inplace")
def masked_fill_(self: NpuArray, mask: NpuArray, value: Any) -> NpuArray:
    """A number where a mask is true."""
    stored_scalar(value, self.dtype)  # refuses what the dtype cannot hold
    _truth(mask)
    CALLS.InplaceMaskedFillScalar(self, mask, bool(value) if self.dtype == BOOL else value)
    return self


@composed("masked_fill.Tensor/inplace")
def masked_fill_tensor_(self: NpuArray, mask: NpuArray, value: Any) -> NpuArray:
    """A tensor's number where a mask is true."""
    _truth(mask)
    if value.ndim:
        raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
                           "dimension(s).")
    CALLS.InplaceMaskedFillTensor(self, mask, placed(value, self, self.dtype))
    return self


@composed("masked_fill.Scalar")
def masked_fill(self: NpuArray, mask: NpuArray, value: Any) -> NpuArray:
    """A copy with a number wherever a mask is true."""
    return masked_fill_(copied(self, broadcast_shapes(self.shape, mask.shape)), mask, value)


@composed("masked_fill.Tensor")
def masked_fill_tensor(self: NpuArray, mask: NpuArray, value: Any) -> NpuArray:
    """A copy with a tensor's number wherever a mask is true."""
    return masked_fill_tensor_(copied(self, broadcast_shapes(self.shape, mask.shape)), mask, value)


def copied(self: NpuArray, shape: tuple[int, ...] | None = None) -> NpuArray:
    out = like(self) if shape is None or shape == self.shape else new(self, shape)
    CALLS.InplaceCopy(out, expanded(self, out.shape))
    return out


def _counted(mask: NpuArray) -> int:
    """The number of true elements of a mask; waits for the device."""
    return int(HOST[0](total(mask, None, False, None)))


@composed("masked_select")
def masked_select(self: NpuArray, mask: NpuArray) -> NpuArray:
    """The elements where a mask is true; their number must be known first."""
    shape = broadcast_shapes(self.shape, mask.shape)
    return _selected(contiguous(expanded(self, shape)), contiguous(expanded(mask, shape)))


def _selected(self: NpuArray, mask: NpuArray) -> NpuArray:
    """Elements by a mask of the same shape. The operator needs memory for all of them."""
    count = _counted(mask)
    room = new(self, (self.size,))
    if count:
        CALLS.MaskedSelect(self, mask, room)
    return room.over((count,), room.strides, room.offset, room.dtype)


@composed("nonzero")
def nonzero(self: NpuArray) -> NpuArray:
    """The positions of nonzero elements, from their positions in the flat array."""
    flags = like(self, BOOL)
    CALLS.NeScalar(self, 0, flags)
    flags = contiguous(flags)
    index = self.memory.device.index
    places = empty((self.size,), INT64, index)
    if self.size:
        CALLS.Arange(0, self.size, 1, places)
    rest = _selected(places, viewed(flags, (self.size,)))
    count = rest.shape[0]
    out = empty((count, self.ndim), INT64, index)
    if not count or not self.ndim:
        return out
    for dim, step in enumerate(math.prod(self.shape[d + 1:]) for d in range(self.ndim)):
        column = out.over((count,), (out.strides[0],), out.offset + dim * 8, INT64)
        divisor = placed(np.array(step, np.int64), out)
        CALLS.DivMod(rest, divisor, 2, column)
        rest = left_over(rest, divisor, "floor")
    return out


INDEX_TYPES = frozenset(map(np.dtype, (np.int64, np.int32, np.uint8, np.bool_)))


def _indices(self: NpuArray, indices: list[Any]) -> tuple[list[NpuArray], NpuArray, list[int]]:
    """Indices in the operator's form: masks as positions, whole dimensions as empty indices in front.

    Returns the indices, the tensor with the indexed dimensions where indices expect them, and its order of dimensions.
    """
    found: list[Any] = []
    for index in indices:
        if index is not None and index.dtype not in INDEX_TYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if index is not None and index.dtype in (BOOL, np.dtype(np.uint8)) and index.ndim:
            if index.shape != self.shape[len(found):len(found) + index.ndim]:
                raise IndexError(f"The shape of the mask {list(index.shape)} at index 0 does not match the shape of "
                                 f"the indexed tensor {list(self.shape)} at index {len(found)}")
            places = nonzero(index)
            found += [contiguous(places.over(places.shape[:1], places.strides[:1], places.offset + d * 8, INT64))
                      for d in range(index.ndim)]
        else:
            found.append(index)
    if len(found) > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    given = [d for d, index in enumerate(found) if index is not None]
    order = list(range(self.ndim))
    if given and given != list(range(given[0], given[-1] + 1)):
        # Indices with whole dimensions between them put their dimensions in front, as in NumPy.
        order = given + [d for d in order if d not in given]
        found = [found[d] for d in given]
    if any(index is not None for index in found):
        try:
            shape = broadcast_shapes(*[index.shape for index in found if index is not None])
        except RuntimeError:
            raise IndexError("indices that do not fit together") from None  # the CPU's kernel explains it
        found = [None if index is None else expanded(index, shape) for index in found]
    nothing = empty((0,), INT64, self.memory.device.index)
    while found and found[-1] is None:
        found.pop()
    return [nothing if index is None else contiguous(converted(index, INT64)) for index in found], \
        self.transpose(order), order


@composed("index.Tensor")
def index(self: NpuArray, indices: list[Any]) -> NpuArray:
    """Elements by indices."""
    found, source, _ = _indices(self, indices)
    if not found:
        return copied(self)
    out = new(self, _indexed_shape(source, found))
    if out.size:
        CALLS.Index(source, found, out)
    return out


def _indexed_shape(source: NpuArray, found: list[NpuArray]) -> tuple[int, ...]:
    given = [d for d, index in enumerate(found) if index.shape != (0,) or source.shape[d] == 0]
    if not given:
        empty_index = next((d for d, index in enumerate(found)), 0)
        return (*source.shape[:empty_index], 0, *source.shape[len(found):])
    shape = broadcast_shapes(*[found[d].shape for d in given])
    return (*source.shape[:given[0]], *shape, *source.shape[given[-1] + 1:])


def _index_put_into(self: NpuArray, indices: list[Any], values: Any, accumulate: bool,
                    unsafe: bool = False) -> NpuArray:
    found, target, _ = _indices(self, indices)
    shape = _indexed_shape(target, found) if found else self.shape
    wrong = unfit(values, shape)
    if wrong is not None:
        raise wrong
    check_put(self, indices, values, accumulate)
    if not found:
        CALLS.InplaceCopy(self, expanded(converted(placed(values, self), self.dtype), self.shape))
        return self
    if 0 not in shape:
        values = converted(placed(values, self), self.dtype)
        CALLS.IndexPutImpl(target, found, contiguous(expanded(values, shape)), accumulate, unsafe)
    return self


COMPOSED["_index_put_impl/inplace"] = COMPOSED["index_put/inplace"] = _index_put_into


@composed("index_put")
def index_put(self: NpuArray, indices: list[Any], values: Any, accumulate: bool) -> NpuArray:
    """A copy with elements replaced by indices."""
    return _index_put_into(copied(self), indices, values, accumulate)


@composed("_index_put_impl")
def index_put_impl(self: NpuArray, indices: list[Any], values: Any, accumulate: bool, unsafe: bool) -> NpuArray:
    """A copy with elements replaced by indices."""
    return _index_put_into(copied(self), indices, values, accumulate, unsafe)


@composed("index_select")
def index_select(self: NpuArray, dim: int, index: NpuArray) -> NpuArray:
    """Slices of a dimension by their numbers."""
    dim = one_dim(self, dim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    count = index.shape[0] if index.ndim else 1
    out = new(self, tuple([count if d == dim else n for d, n in enumerate(self.shape)]))
    if out.size:
        CALLS.IndexSelect(self, dim, viewed(contiguous(index), (count,)), out)
    return out


@composed("embedding")
def embedding(weight: NpuArray, indices: NpuArray, padding_idx: int, scale: bool, sparse: bool) -> NpuArray:
    """Rows of a table by their numbers."""
    out = new(weight, (*indices.shape, weight.shape[1]))
    if out.size:
        CALLS.Embedding(weight, contiguous(indices), out)
    return out


@composed("embedding_dense_backward")
def embedding_backward(grad: NpuArray, indices: NpuArray, num_weights: int, padding_idx: int,
                       scale: bool) -> NpuArray:
    """Gradients added up by rows of the table."""
    out = new(grad, (num_weights, grad.shape[-1]))
    CALLS.EmbeddingDenseBackward(grad, contiguous(indices), num_weights, padding_idx & 0xFFFF_FFFF_FFFF_FFFF, scale,
                                 out)
    return out


@composed("constant_pad_nd")
def constant_pad(self: NpuArray, pad: Any, value: Any) -> NpuArray:
    """A number around a tensor."""
    pad = tuple(pad)
    if len(pad) % 2 or len(pad) > 2 * self.ndim:
        raise RuntimeError("Length of pad must be even and at most twice the number of dimensions")
    shape = list(self.shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
        if shape[-1 - i] < 0:
            raise RuntimeError(f"The input size {self.shape[-1 - i]}, plus negative padding {pad[2 * i]} and "
                               f"{pad[2 * i + 1]} resulted in a negative output size, which is invalid.")
    out = new(self, tuple(shape))
    if out.size:
        CALLS.ConstantPadNd(self, pad, value, out)
    return out


@composed("repeat")
def repeat(self: NpuArray, repeats: Any) -> NpuArray:
    """Copies along dimensions."""
    repeats = tuple(repeats)
    if len(repeats) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    out = new(self, tuple([n * k for n, k in zip(shape, repeats, strict=True)]))
    if out.size:
        CALLS.Repeat(self, repeats, out)
    return out


@composed("flip")
def flip(self: NpuArray, dims: Any) -> NpuArray:
    """Dimensions from their end to their start, by indices that count down."""
    made = self
    for dim in wrap_dims(dims, self.ndim) if tuple(dims) else ():
        count = empty((self.shape[dim],), INT64, self.memory.device.index)
        CALLS.Arange(self.shape[dim] - 1, -1, -1, count)
        made = index_select(made, dim, count)
    return made if made is not self else copied(self)


@composed("rot90")
def rot90(self: NpuArray, k: int, dims: Any) -> NpuArray:
    """A plane rotated by right angles: flipped, and its two dimensions exchanged."""
    first, second = wrap_dims(dims, self.ndim)
    k %= 4
    if k == 0:
        return copied(self)
    if k == 2:
        return flip(self, (first, second))
    order = list(range(self.ndim))
    order[first], order[second] = second, first
    return flip(self, (second if k == 1 else first,)).transpose(order)


@composed("roll")
def roll(self: NpuArray, shifts: Any, dims: Any) -> NpuArray:
    """Elements moved along dimensions; those beyond the end go to the start."""
    shifts, dims = as_numbers(shifts), as_numbers(dims)
    if not dims:
        flat = viewed(contiguous(self), (self.size,))
        return viewed(roll(flat, shifts, (0,)), self.shape)
    made = self
    for shift, dim in zip(shifts, dims, strict=True):
        made = _rolled(made, shift, one_dim(self, dim))
    return made


def _rolled(self: NpuArray, shift: int, dim: int) -> NpuArray:
    extent = self.shape[dim]
    out = new(self, self.shape)
    shift = shift % extent if extent else 0
    for start, stop, to in ((0, extent - shift, shift), (extent - shift, extent, 0)):
        if stop > start:
            CALLS.InplaceCopy(cut(out, dim, to, stop - start), cut(self, dim, start, stop - start))
    return out


def cut(array: NpuArray, dim: int, start: int, length: int) -> NpuArray:
    """A stretch of a dimension, as a view."""
    shape = tuple([length if d == dim else n for d, n in enumerate(array.shape)])
    return array.over(shape, array.strides, array.offset + start * array.strides[dim], array.dtype)


def _places(self: NpuArray, dim: int, index: NpuArray) -> tuple[NpuArray, list[Any]]:
    """An operand with at least one dimension, and the indices of slices of it."""
    target = self if self.ndim else viewed(self, (1,))
    count = index.shape[0] if index.ndim else 1
    return target, [*[None] * one_dim(self, dim), viewed(contiguous(index), (count,))]


@composed("index_fill.int_Scalar")
def index_fill(self: NpuArray, dim: int, index: NpuArray, value: Any) -> NpuArray:
    """A copy with a number in some slices."""
    if not isinstance(value, (NpuArray, np.ndarray)):
        stored_scalar(value, self.dtype)  # refuses what the dtype cannot hold
    out = copied(self)
    target, places = _places(out, dim, index)
    _index_put_into(target, places, placed(value, self, self.dtype), False)
    return out


@composed("index_fill.int_Tensor")
def index_fill_tensor(self: NpuArray, dim: int, index: NpuArray, value: Any) -> NpuArray:
    """A copy with the number of a tensor in some slices."""
    return index_fill(self, dim, index, value)


@composed("index_copy")
def index_copy(self: NpuArray, dim: int, index: NpuArray, source: NpuArray) -> NpuArray:
    """A copy with some slices replaced."""
    copied_dim(self, dim, index, source)
    out = copied(self)
    target, places = _places(out, dim, index)
    _index_put_into(target, places, source if source.ndim else viewed(source, (1,)), False)
    return out


@composed("take")
def take(self: NpuArray, numbers: NpuArray) -> NpuArray:
    """Elements by their positions in the flat array, which may count from the end."""
    flat, wanted = viewed(contiguous(self), (self.size,)), viewed(contiguous(numbers), (numbers.size,))
    return viewed(index(flat, [wanted]), numbers.shape)


def _rearranged(array: NpuArray, cells: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> NpuArray:
    """The cells of an array in another order, in new memory."""
    split = viewed(contiguous(array), cells)
    moved = split.over(tuple([split.shape[d] for d in order]), tuple([split.strides[d] for d in order]), split.offset,
                       split.dtype)
    made = contiguous(moved)
    return viewed(copied(made) if made.memory is array.memory else made, shape)


@composed("pixel_shuffle")
def pixel_shuffle(self: NpuArray, upscale_factor: int) -> NpuArray:
    """Channels become pixels."""
    return _rearranged(self, *shuffled(self, upscale_factor))


@composed("pixel_unshuffle")
def pixel_unshuffle(self: NpuArray, downscale_factor: int) -> NpuArray:
    """Pixels become channels."""
    return _rearranged(self, *unshuffled(self, downscale_factor))


@composed("put")
def put(self: NpuArray, index: NpuArray, source: NpuArray, accumulate: bool) -> NpuArray:
    """A copy with elements replaced, or added to, by their positions in the flat array."""
    if index.size != source.size:
        raise IndexError("as many elements as numbers are needed")  # the CPU's kernel explains it
    if not accumulate:
        alert("put_")
    out = new(self, self.shape)
    CALLS.InplaceCopy(out, self)
    if index.size:
        _index_put_into(viewed(out, (out.size,)), [viewed(contiguous(index), (index.size,))],
                        viewed(contiguous(source), (source.size,)), accumulate)
    return out
