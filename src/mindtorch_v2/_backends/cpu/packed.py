"""Sequences of different lengths: packed, without padding, and padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.promotion import pretty
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY
from .memory import contiguous_step, copy_, empty, zeros
from .shape import cat
from .view import select_step, slice_step, transpose_step, view_step

Array = Any


cat_step = step("aten::cat")(cat)


def _present(sizes: Array, batch: int) -> Array:
    """`(time, batch)`: whether a sequence still runs at a time, given the number that do; longer ones come first."""
    return np.arange(batch) < sizes[:, None]


def pack(padded: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    """`(data, batch_sizes)`: the rows that are not padding, in time order, and how many there are at each time."""
    rows = transpose_step(padded, 0, 1) if batch_first else padded
    if lengths.dtype != np.int64 or lengths.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu "
                           f"{pretty(FROM_NUMPY[lengths.dtype])} tensor")
    if len(lengths) != rows.shape[1]:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
                           f"(batch_size={rows.shape[1]})")
    if padded.size == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths[-1] <= 0 or lengths.min() <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
                           "<= 0")
    if (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    sizes = empty((int(lengths[0]),), lengths.dtype)
    # From the shortest on: all sequences that are at least as long share these times.
    parts, start = [], 0
    for length in np.unique(lengths).tolist():
        size = int(np.count_nonzero(lengths >= length))
        block = slice_step(slice_step(rows, 0, start, length, 1), 1, 0, size, 1)
        block = block if block.flags.c_contiguous else contiguous_step(block)
        parts.append(view_step(block, (-1, *block.shape[2:])))
        sizes[start:length] = size
        start = length
    return cat_step(parts, 0), sizes


def pack_backward(grad: Array, input_size: Sequence[int], batch_sizes: Array, batch_first: bool) -> Array:
    """Rows back at the places from which they were packed, zeros elsewhere."""
    shape = tuple(input_size)
    made = zeros((shape[1], shape[0], *shape[2:]) if batch_first else shape, grad.dtype)
    row = 0
    for time, size in enumerate(batch_sizes.tolist()):
        target = slice_step(select_step(made, 0, time), 0, 0, size, 1)
        copy_(target, slice_step(grad, 0, row, row + size, 1))
        row += size
    return transpose_step(made, 0, 1) if batch_first else made


def lengths(batch_sizes: Array) -> Array:
    """The length of each sequence."""
    made = empty((int(batch_sizes[0]),), batch_sizes.dtype)
    return _present(batch_sizes, len(made)).sum(0, out=made)
