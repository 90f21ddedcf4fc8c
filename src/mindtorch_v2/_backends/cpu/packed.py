"""Sequences of different lengths: packed, which leaves out what is padding, and padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any


def _present(sizes: Array, batch: int) -> Array:
    """`(time, batch)`: whether a sequence still runs at a time, given how many do; longer ones come first."""
    return np.arange(batch) < sizes[:, None]


def pack(padded: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    """`(data, batch_sizes)`: the rows that are not padding, in time order, and how many there are at each time."""
    rows = padded.swapaxes(0, 1) if batch_first else padded
    if lengths.dtype != np.int64:
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor")
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
    present = np.arange(lengths[0])[:, None] < lengths
    return rows[: lengths[0]][present[: rows.shape[0]]], present.sum(1)


def pack_backward(grad: Array, input_size: Sequence[int], batch_sizes: Array, batch_first: bool) -> Array:
    """Rows back to where they were packed from, zeros elsewhere."""
    made = np.zeros(tuple(input_size), grad.dtype)
    rows = made.swapaxes(0, 1) if batch_first else made
    rows[: len(batch_sizes)][_present(batch_sizes, rows.shape[1])[: rows.shape[0]]] = grad
    return made


def pad(data: Array, batch_sizes: Array, batch_first: bool, padding_value: Any,
        total_length: int) -> tuple[Array, Array]:
    """`(padded, lengths)`."""
    time, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length > 0:
        if total_length < time:
            raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input, but "
                               f"got total_length={total_length} and max sequence length being {time}")
    else:
        total_length = time
    made = np.full((total_length, batch, *data.shape[1:]), padding_value, data.dtype)
    present = _present(batch_sizes, batch)
    made[:time][present] = data
    return (made.swapaxes(0, 1) if batch_first else made), present.sum(0)
