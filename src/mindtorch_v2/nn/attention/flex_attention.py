"""`torch.nn.attention.flex_attention`: attention whose scores a program changes by a function, computed op by op.

PyTorch compiles the function into a kernel. Here it is called once, on all scores together, so it has to be made of
elementwise ops and of indexing, as PyTorch asks too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import bool_, float32, float64
from ..._tensor import Tensor
from ._block_mask import (
    DEFAULT_BLOCK,
    BlockMask,
    MaskMod,
    create_block_mask,
    dense_mask,
    empty_block_mask,
    noop_mask,
    positions,
)

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
           "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK
_create_empty_block_mask = empty_block_mask
_mask_mod_signature = MaskMod
ScoreMod = Callable[..., Tensor]
_score_mod_signature = ScoreMod


class AuxRequest(NamedTuple):
    """What to return besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was returned besides the result."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _identity(score: Tensor, *indices: Tensor) -> Tensor:
    return score


def create_mask(mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: DeviceLike = None) -> Tensor:
    """All values of a function of single indices; of one that changes scores, those it makes of zeros.

    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2).tolist()
    [[[[True, False], [True, True]]]]
    """
    batch, heads = B or 1, H or 1
    if mod_fn.__code__.co_argcount - len(mod_fn.__defaults__ or ()) == 5:
        zeros = aten.zeros((batch, heads, Q_LEN, KV_LEN), device=device)
        return mod_fn(zeros, *positions(batch, heads, Q_LEN, KV_LEN, device))
    return dense_mask(mod_fn, batch, heads, Q_LEN, KV_LEN, device)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that shows what any of the masks shows."""
    return _combined(mask_mods, aten.bitwise_or, False)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that shows what all of the masks show."""
    return _combined(mask_mods, aten.bitwise_and, True)


def _combined(mask_mods: tuple[MaskMod, ...], combine: Callable[[Tensor, Tensor], Tensor], start: bool) -> MaskMod:
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = aten.full((), start, dtype=bool_, device=b.device)
        for one in mask_mods:
            result = combine(result, one(b, h, q_idx, kv_idx))
        return result

    return mask


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.shape[-1]} and E={key.shape[-1]}.")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and "
                         f"Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and query.shape[1] % key.shape[1]:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got "
                         f"Hq={query.shape[1]} and Hkv={key.shape[1]}.")
    if key.shape[0] != query.shape[0] and key.shape[0] != 1:
        raise ValueError(f"Expect query and key/value to have the same batch size, or key/value of 1, but got "
                         f"Bq={query.shape[0]} and Bkv={key.shape[0]}.")


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: ScoreMod | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: dict[str, Any] | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """Attention of (batch, heads, length, features), with scores that `score_mod` changes and `block_mask` limits.

    A row of which nothing may be looked at gives zeros. `kernel_options` guide PyTorch's kernels and change nothing.
    """
    _check(query, key, value, enable_gqa)
    batch, heads, q_len, features = query.shape
    if heads != key.shape[1]:
        key, value = (aten.repeat_interleave(part, heads // key.shape[1], dim=1) for part in (key, value))
    kind = float64 if query.dtype is float64 else float32
    scores = aten.matmul(query, key.transpose(-2, -1)).to(kind)
    scores = scores * (1.0 / math.sqrt(features) if scale is None else scale)
    indices = positions(batch, heads, q_len, key.shape[2], query.device)
    scores = (score_mod or _identity)(scores, *indices)
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        scores = aten.where(block_mask.mask_mod(*indices), scores, -math.inf)
    hidden = aten.all(scores == -math.inf, dim=-1, keepdim=True)
    weights = aten.where(hidden, 0.0, aten.softmax(scores, dim=-1))
    made = aten.matmul(weights.to(query.dtype), value)
    if return_aux is None and not return_lse:
        return made
    wanted = return_aux or AuxRequest(lse=True)
    lse = aten.logsumexp(scores, dim=-1) if wanted.lse else None
    if return_aux is None:
        return made, lse
    return made, AuxOutput(lse, aten.amax(scores, dim=-1) if wanted.max_scores else None)
