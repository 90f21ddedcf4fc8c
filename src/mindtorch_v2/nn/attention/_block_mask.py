"""`BlockMask`: which blocks of an attention matrix are computed at all, and which of them need a mask inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._construct import tensor
from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import bool_, int32, int64
from ..._tensor import Tensor

DEFAULT_BLOCK = 128
MaskMod = Callable[..., Tensor]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Everything is visible."""
    return aten.ones((), dtype=bool_, device=batch.device)


def positions(batch: int, heads: int, q_len: int, kv_len: int, device: DeviceLike) -> tuple[Tensor, ...]:
    """Indices of batch, head, query and key, each along a dimension of its own: functions of single indices that are
    made of elementwise ops and of indexing give whole matrices for them."""
    sizes = (batch, heads, q_len, kv_len)
    return tuple(aten.arange(size, device=device).reshape([size if place == own else 1 for place in range(4)])
                 for own, size in enumerate(sizes))


def dense_mask(mask_mod: MaskMod, batch: int, heads: int, q_len: int, kv_len: int, device: DeviceLike) -> Tensor:
    """The mask of all elements."""
    made = mask_mod(*positions(batch, heads, q_len, kv_len, device))
    return aten.expand(made.to(bool_), (batch, heads, q_len, kv_len))


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """For each row of a matrix: the number of its blocks, and their columns, followed by the other columns."""
    numbers = blocks.to(int32)
    return (aten.sum(numbers, -1).to(int32),
            aten.argsort(numbers, dim=-1, descending=True, stable=True).to(int32).contiguous())


def _to_dense(count: Tensor, indices: Tensor) -> Tensor:
    """The matrix of blocks that `_ordered` has taken apart."""
    columns = indices.shape[-1]
    used = (aten.arange(columns, device=indices.device) < count.unsqueeze(-1)).to(int32)
    made = aten.zeros((*indices.shape[:-1], columns), dtype=int32, device=indices.device)
    return aten.scatter(made, -1, indices.to(int64), used)


def _transposed(count: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if count is None or indices is None:
        return None, None
    return _ordered(_to_dense(count, indices).transpose(-2, -1))


class _Parts(NamedTuple):
    """What `as_tuple` returns with its first flag."""

    kv_num_blocks: Any
    kv_indices: Any
    full_kv_num_blocks: Any
    full_kv_indices: Any
    q_num_blocks: Any
    q_indices: Any
    full_q_num_blocks: Any
    full_q_indices: Any


class BlockMask:
    """A mask in blocks: for every row of blocks, which columns are partly and which wholly visible.

    >>> import mindtorch_v2 as torch
    >>> from mindtorch_v2.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256, "cpu")
    >>> mask.shape, mask.sparsity(), mask.kv_num_blocks.tolist()
    ((1, 1, 256, 256), 25.0, [[[1, 1]]])
    """

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
                 full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
                 q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
                 BLOCK_SIZE: tuple[int, int], mask_mod: MaskMod) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
                       full_kv_indices: Tensor | None = None, BLOCK_SIZE: Any = DEFAULT_BLOCK,
                       mask_mod: MaskMod | None = None, seq_lengths: tuple[int, int] | None = None,
                       compute_q_blocks: bool = True) -> BlockMask:
        """A mask from the columns of blocks of each row; those of each column are computed."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        sides = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        by_query: tuple[Any, Any] = (None, None)
        full_by_query: tuple[Any, Any] = (None, None)
        if compute_q_blocks:
            by_query = _transposed(kv_num_blocks, kv_indices)
            full_by_query = _transposed(full_kv_num_blocks, full_kv_indices)
        lengths = seq_lengths or (kv_indices.shape[-2] * sides[0], kv_indices.shape[-1] * sides[1])
        return cls(lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_query, *full_by_query,
                   sides, noop_mask if mask_mod is None else mask_mod)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The fields in order, the sizes spread out unless `flatten` is off."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        sides = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._parts(), *sides, self.mask_mod)

    def _parts(self) -> _Parts:
        return _Parts(*(getattr(self, name) for name in _Parts._fields))

    def _with(self, change: Callable[[Tensor], Tensor], mask_mod: MaskMod | None = None) -> BlockMask:
        parts = _Parts(*(None if part is None else change(part) for part in self._parts()))
        return BlockMask(self.seq_lengths, **parts._asdict(), BLOCK_SIZE=self.BLOCK_SIZE,
                         mask_mod=mask_mod or self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask of all elements."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many elements the mask has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparsity(self) -> float:
        """The percentage of blocks that are skipped, by their elements."""
        seen = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            seen += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - seen * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """A matrix with 1 for every block that is looked at."""
        made = _to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            made = aten.bitwise_or(made, _to_dense(self.full_kv_num_blocks, self.full_kv_indices))
        return made

    def to(self, device: DeviceLike) -> BlockMask:
        """The mask on a device."""
        return self._with(lambda part: part.to(device))

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of part of the batch, heads or rows of blocks; what is inside blocks is unknown for it."""
        made = self._with(lambda part: part[index])
        made.q_num_blocks = made.q_indices = made.full_q_num_blocks = made.full_q_indices = None
        made.mask_mod = _sliced
        return made

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _sliced(*indices: Tensor) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def create_block_mask(mask_mod: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: DeviceLike = None, BLOCK_SIZE: Any = DEFAULT_BLOCK, _compile: bool = False,
                      separate_full_blocks: bool = True) -> BlockMask:
    """The blocks of the mask that a function of single indices describes."""
    batch, heads = B or 1, H or 1
    sides = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    mask = dense_mask(mask_mod, batch, heads, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // sides[0]), -(-KV_LEN // sides[1])
    padded = aten.zeros((batch, heads, rows * sides[0], columns * sides[1]), dtype=bool_, device=mask.device)
    padded[:, :, :Q_LEN, :KV_LEN] = mask
    seen = padded.reshape(batch, heads, rows, sides[0], columns, sides[1]).permute(0, 1, 2, 4, 3, 5).sum((-2, -1))
    whole = seen == sides[0] * sides[1]
    partial = aten.logical_and(seen > 0, aten.logical_not(whole)) if separate_full_blocks else seen > 0
    full: tuple[Any, Any] = _ordered(whole) if separate_full_blocks else (None, None)
    count, indices = _ordered(partial)
    return BlockMask.from_kv_blocks(count, indices, full[0], full[1], sides, mask_mod, (Q_LEN, KV_LEN))


def empty_block_mask(query: Tensor, key: Tensor) -> BlockMask:
    """One block that covers everything."""
    one = tensor([[[1]]], dtype=int32, device=query.device)
    return BlockMask.from_kv_blocks(one, tensor([[[[0]]]], dtype=int32, device=query.device), BLOCK_SIZE=1 << 30,
                                    seq_lengths=(1, 1))
