"""Batches of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..._construct import as_tensor
from ..._dispatch.namespace import aten
from ..._dtype import int64
from ..._memory_format import contiguous_format
from ..._ops.packed import pack_on_device
from ..._tensor import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]


class PackedSequence_(NamedTuple):
    """What a packed sequence consists of."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    made = aten.empty_like(permutation, memory_format=contiguous_format)
    return aten.scatter_(made, 0, permutation, aten.arange(0, permutation.numel(), device=permutation.device))


class PackedSequence(PackedSequence_):
    """Sequences without their padding: all first elements, then all second ones, and so on, longest sequence first.

    `batch_sizes[t]` says how many sequences are at least `t + 1` long. If the sequences had to be sorted,
    `sorted_indices` says how, and `unsorted_indices` how to undo that. See `pack_padded_sequence`.
    """

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
                unsorted_indices: Any = None) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError("batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                             "manually. They should be instantiated by functions like pack_sequence and "
                             "pack_padded_sequences in nn.utils.rnn. "
                             "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data with another dtype or device; this object itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
        indices = [None if i is None else i.to(data.device, **kwargs)
                   for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def _converted(self, name: str) -> PackedSequence:
        data = getattr(self.data, name)()
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def double(self) -> PackedSequence:
        """The data as float64."""
        return self._converted("double")

    def float(self) -> PackedSequence:
        """The data as float32."""
        return self._converted("float")

    def half(self) -> PackedSequence:
        """The data as float16."""
        return self._converted("half")

    def long(self) -> PackedSequence:
        """The data as int64."""
        return self._converted("long")

    def int(self) -> PackedSequence:
        """The data as int32."""
        return self._converted("int")

    def short(self) -> PackedSequence:
        """The data as int16."""
        return self._converted("short")

    def char(self) -> PackedSequence:
        """The data as int8."""
        return self._converted("char")

    def byte(self) -> PackedSequence:
        """The data as uint8."""
        return self._converted("byte")

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data is in page-locked memory, which this runtime does not have."""
        return False

    def pin_memory(self) -> PackedSequence:
        """There is no device that page-locked memory would be for."""
        raise NotImplementedError("PackedSequence.pin_memory: this runtime has no page-locked memory")


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Leave out the padding of `(time, batch, …)` input, or `(batch, time, …)` with `batch_first`.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 3], [2, 0]]), [2, 1]).data
    tensor([1, 3, 2])
    """
    # Lengths and sizes of batches are the host's, whatever the default device is.
    lengths = as_tensor(lengths, dtype=int64, device="cpu") if not isinstance(lengths, Tensor) else lengths.to(int64)
    order = None
    if not enforce_sorted:
        lengths, order = aten.sort(lengths, descending=True)
        order = order.to(input.device)
        input = aten.index_select(input, 0 if batch_first else 1, order)
    pack = aten._pack_padded_sequence if input.is_cpu else pack_on_device
    data, batch_sizes = pack(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """`(padded, lengths)`: undo `pack_padded_sequence`."""
    longest = sequence.batch_sizes.shape[0]
    if total_length is not None:
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but "
                             f"got total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    padded, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value,
                                                longest)
    order = sequence.unsorted_indices
    if order is not None:
        padded = aten.index_select(padded, 0 if batch_first else 1, order)
        # The lengths are on the CPU, wherever the data is.
        return padded, lengths[order.cpu()]
    return padded, lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Tensors of different lengths as one, the shorter ones filled up.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of type: "
                           f"{type(sequences)}")
    given = aten.unbind(sequences, 0) if isinstance(sequences, Tensor) else tuple(sequences)
    return aten.pad_sequence(given, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, as a list."""
    rows = padded_sequences if batch_first else aten.transpose(padded_sequences, 0, 1)
    return [aten.clone(aten.narrow(row, 0, 0, length), memory_format=contiguous_format)
            for row, length in zip(aten.unbind(rows, 0), lengths.tolist())]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of tensors of different lengths."""
    lengths = as_tensor([sequence.shape[0] for sequence in sequences], dtype=int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)
