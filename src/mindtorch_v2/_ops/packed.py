"""Packing sequences of different lengths, and padding them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import to_host
from .._backends.cpu import packed as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._tensor import Tensor, wrap


def _lengths(batch_sizes: Tensor) -> Tensor:
    """How long each sequence is, from how many run at each time."""
    members = aten.arange(int(to_host(batch_sizes._a)[0]), device=batch_sizes.device)
    return aten.sum(aten.gt(batch_sizes, aten.unsqueeze(members, 1)), (1,))


declare(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)", cpu=kernels.pack,
    where="f", differentiable=(0,),
    grad={"input": lambda grad, input_shape, result1, batch_first: aten._pack_padded_sequence_backward(
        grad, input_shape, result1, batch_first)},
)
declare(
    "_pack_padded_sequence_backward(Tensor grad, int[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor",
    cpu=kernels.pack_backward, where="n",
    grad={"grad": lambda grad, batch_sizes, batch_first: aten._pack_padded_sequence(
        grad, _lengths(batch_sizes), batch_first)[0]},
)


def pack_on_device(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """`_pack_padded_sequence` of a tensor that is not on the CPU, where lengths and sizes of batches stay."""
    shape = np.broadcast_to(np.zeros((), np.uint8), input._a.shape)
    sizes = kernels.pack(shape, to_host(lengths._a), batch_first)[1]  # raises what is wrong with the lengths
    data = aten.transpose(input, 0, 1) if batch_first else input
    ends = [*(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
    pieces, start = [], 0
    for end in ends:
        part = aten.slice(aten.slice(data, 0, start, end), 1, 0, int(sizes[start]))
        pieces.append(aten.flatten(part, 0, 1))
        start = end
    return aten.cat(pieces, 0), wrap(sizes)


def _pad_packed_sequence(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any,
                         total_length: int) -> tuple[Tensor, Tensor]:
    sizes = to_host(batch_sizes._a)
    time, batch = len(sizes), int(sizes[0])
    if 0 < total_length < time:
        raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input, but got "
                           f"total_length={total_length} and max sequence length being {time}")
    features = data._a.shape[1:]
    padded = aten.full((max(total_length, time), batch, *features), padding_value, dtype=data.dtype, device=data.device)
    # One copy for every run of steps in which the same sequences are going on.
    ends = [*(np.flatnonzero(np.diff(sizes)) + 1).tolist(), time]
    start = row = 0
    for end in ends:
        size = int(sizes[start])
        rows = aten.slice(data, 0, row, row + (end - start) * size)
        place = aten.slice(aten.slice(padded, 0, start, end), 1, 0, size)
        aten.copy_(place, aten.view(rows, (end - start, size, *features)))
        row += (end - start) * size
        start = end
    return aten.transpose(padded, 0, 1) if batch_first else padded, wrap(kernels.lengths(sizes))


declare("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
        "int total_length) -> (Tensor, Tensor)", composite=_pad_packed_sequence, where="f")


def _pad_sequence(sequences: Any, batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not len(sequences):
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence._a.shape[0] for sequence in sequences)
    shape = sequences[0]._a.shape[1:]
    size = (len(sequences), longest, *shape) if batch_first else (longest, len(sequences), *shape)
    made = aten.full(size, padding_value, dtype=sequences[0].dtype, device=sequences[0].device)
    for number, sequence in enumerate(sequences):
        length = sequence._a.shape[0]
        row = aten.select(made, 0 if batch_first else 1, number)
        aten.copy_(aten.narrow(row, 0, longest - length if padding_side == "left" else 0, length), sequence)
    return made


declare("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side='right') -> "
        "Tensor", composite=_pad_sequence, where="f")
