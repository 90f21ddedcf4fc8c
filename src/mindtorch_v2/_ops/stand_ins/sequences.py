"""Attention's parts at inference, and losses of sequences."""

from __future__ import annotations

import math

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from . import formula


@formula("_transform_bias_rescale_qkv")
def split_heads(qkv: Tensor, bias: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of every head from what was computed side by side; queries are scaled for attention."""
    batch, steps, width = qkv.shape
    if width % (3 * num_heads):
        raise RuntimeError(f"Expected D % num_head == 0, got D={width // 3}, num_head={num_heads}")
    head = width // 3 // num_heads
    parts = (qkv + bias).reshape(batch, steps, 3, num_heads, head).permute(2, 0, 3, 1, 4).contiguous()
    return parts[0] * (1 / math.sqrt(head)), parts[1], parts[2]


@formula("_masked_softmax")
def masked_softmax(self: Tensor, mask: Tensor, dim: int | None, mask_type: int | None) -> Tensor:
    """Softmax over what the mask does not hide."""
    by_keys = mask_type == 1
    if mask_type not in (0, 1, 2) or tuple(mask.shape) != (
            (self.shape[0], self.shape[-1]) if by_keys else tuple(self.shape)[-2:] if mask_type == 0 else self.shape):
        raise ValueError("a mask of another shape or type")  # said in full by the CPU's kernel
    wide = mask[:, None, None, :] if by_keys else mask
    return aten._softmax(self.masked_fill(wide, -math.inf), -1 if dim is None else dim, False)
