"""Kernels of attention in an encoder layer at inference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .softmax import softmax

Array = Any
# What a mask covers: pairs of positions, the keys of each sequence, or every score.
PAIRS, KEYS, SCORES = 0, 1, 2


def split_heads(qkv: Array, bias: Array, num_heads: int) -> tuple[Array, Array, Array]:
    """Queries, keys and values of every head, from one joint product; queries are scaled for attention."""
    batch, steps, width = qkv.shape
    if width % (3 * num_heads):
        raise RuntimeError(f"Expected D % num_head == 0, got D={width // 3}, num_head={num_heads}")
    head = width // 3 // num_heads
    parts = (qkv + bias).reshape(batch, steps, 3, num_heads, head).transpose(2, 0, 3, 1, 4)
    made = np.ascontiguousarray(parts)
    made[0] *= qkv.dtype.type(1 / math.sqrt(head))
    return made[0], made[1], made[2]


def masked_softmax(a: Array, mask: Array, dim: int | None, mask_type: int | None) -> Array:
    """Softmax over the scores that the mask does not hide."""
    if mask.dtype != np.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type is None:
        if mask.shape != a.shape:
            raise RuntimeError("Mask Type should be defined: the mask's shape is not that of the scores")
        mask_type = SCORES
    if mask_type not in (PAIRS, KEYS, SCORES):
        raise RuntimeError("Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask_type == KEYS:
        if mask.shape != (a.shape[0], a.shape[-1]):
            raise RuntimeError(f"For mask_type == {KEYS} mask shape should be (B, L)")
        mask = mask[:, None, None, :]
    elif mask_type == PAIRS and mask.shape != a.shape[-2:]:
        raise RuntimeError(f"For mask_type == {PAIRS} mask shape should be (L, L)")
    elif mask_type == SCORES and mask.shape != a.shape:
        raise RuntimeError(f"For mask_type == {SCORES} mask shape should match input shape. mask: "
                           f"{list(mask.shape)} input: {list(a.shape)}")
    hidden = np.where(mask, a.dtype.type(-math.inf), a)
    return softmax(hidden, a.ndim - 1 if dim is None else dim, False)
