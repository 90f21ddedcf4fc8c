"""Scaled dot-product attention in one go, and its gradients. 16-bit floats are computed in float32.

Heads of queries that share a head of keys are rows of one product.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES

Array = Any


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _grouped(a: Array, heads: int) -> Array:
    """`(batch, heads, rows, features)`: as many heads as there are of keys."""
    batch, many, rows, features = a.shape
    return a if many == heads else a.reshape(batch, heads, many // heads * rows, features)


def _scores(query: Array, key: Array, is_causal: bool, mask: Array | None, scale: float) -> Array:
    """The scaled and masked products of queries and keys, `(batch, heads of keys, rows, keys)`."""
    batch, many, rows, _ = query.shape
    heads, keys = key.shape[1:3]
    made = np.matmul(_grouped(query * query.dtype.type(scale), heads), key.swapaxes(-1, -2))
    whole = made.reshape(batch, many, rows, keys)
    if mask is not None:
        whole += mask
    if is_causal:
        np.copyto(whole, -np.inf, where=np.arange(keys) > np.arange(rows)[:, None])
    return made


def _factor(query: Array, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def forward(query: Array, key: Array, value: Array, dropout_p: float, is_causal: bool, attn_mask: Array | None,
            scale: float | None) -> tuple[Array, Array]:
    """`(softmax(query @ key.T * scale + mask) @ value, logarithm of the softmax's denominators)`."""
    q, k, v = _wide(query), _wide(key), _wide(value)
    scores = _scores(q, k, is_causal, None if attn_mask is None else _wide(attn_mask), _factor(query, scale))
    # A row that sees nothing has a maximum of -inf; it becomes zero.
    top = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), np.finfo(scores.dtype).min)
    scores -= top
    np.exp(scores, scores)
    total = scores.sum(-1, keepdims=True)
    made = np.matmul(scores, v)
    made /= np.where(total == 0, 1, total)
    logs = (top + np.log(total)).reshape(query.shape[:3])
    # The result lies in memory as the query does: what follows often wants the heads side by side again.
    result = np.empty_like(query)
    result[...] = made.reshape(query.shape)
    return result, logs


def backward(grad: Array, query: Array, key: Array, value: Array, out: Array, logsumexp: Array, dropout_p: float,
             is_causal: bool, attn_mask: Array | None, scale: float | None) -> tuple[Array, Array, Array]:
    """Gradients of query, key and value."""
    pull, q, k, v = _wide(grad), _wide(query), _wide(key), _wide(value)
    heads, factor = key.shape[1], _factor(query, scale)
    weights = _scores(q, k, is_causal, None if attn_mask is None else _wide(attn_mask), factor)
    logs = np.where(np.isneginf(logsumexp), np.inf, logsumexp)
    weights -= logs.reshape(*weights.shape[:3], 1)
    np.exp(weights, weights)
    pull, q_rows = _grouped(pull, heads), _grouped(q, heads)
    shared = np.einsum("bhre,bhre->bhr", pull, _grouped(_wide(out), heads))[..., None]
    grad_value = np.matmul(weights.swapaxes(-1, -2), pull)
    slope = np.matmul(pull, v.swapaxes(-1, -2))
    slope -= shared
    slope *= weights
    slope *= slope.dtype.type(factor)
    grad_query = np.matmul(slope, k).reshape(query.shape)
    grad_key = np.matmul(slope.swapaxes(-1, -2), q_rows)
    return (grad_query.astype(query.dtype, copy=False), grad_key.astype(key.dtype, copy=False),
            grad_value.astype(value.dtype, copy=False))
