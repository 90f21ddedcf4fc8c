"""Scaled dot-product attention in one pass, and its gradients. 16-bit floats are computed in float32.

Heads of queries that share a head of keys are rows of one product.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from . import providers
from .blocks import SpreadInPlace
from .memory import empty_like
from .softmax import is_moderate
from .sums import row_sums

Array = Any


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _grouped(a: Array, heads: int) -> Array:
    """`(batch, heads, rows, features)`, with the number of heads of the keys."""
    batch, many, rows, features = a.shape
    return a if many == heads else a.reshape(batch, heads, many // heads * rows, features)


def _scores(scaled: Array, key: Array) -> Array:
    """The products of scaled queries and keys, `(batch, heads of keys, rows, keys)`."""
    # As rows times rows: BLAS is slow on small matrices if the second is transposed.
    return np.matmul(_grouped(scaled, key.shape[1]), key.swapaxes(-1, -2))


def _hidden(rows: int, keys: int) -> Array:
    """The positions that a row must not see, with causal attention."""
    return np.arange(keys) > np.arange(rows)[:, None]


def _masked(scores: Array, shape: tuple[int, ...], is_causal: bool, mask: Array | None) -> None:
    """Add the mask, in place; `shape` is that of the scores by heads of queries."""
    whole = scores.reshape(shape)
    if mask is not None:
        whole += mask
    if is_causal:
        np.copyto(whole, -np.inf, where=_hidden(*shape[-2:]))


def _plain_exponentials(scores: Array, shape: tuple[int, ...], is_causal: bool, mask: Array | None) -> bool:
    """Try to replace scores by their exponentials, in place; False if their size or a mask forbids it."""
    if mask is not None or not scores.size or not is_moderate(scores):
        return False
    np.exp(scores, scores)
    if is_causal:
        seen = np.logical_not(_hidden(*shape[-2:])).astype(scores.dtype)
        flat = scores.reshape(-1, seen.size)
        with SpreadInPlace(seen.size):
            flat *= seen.reshape(-1)
    return True


def _factor(query: Array, scale: float | None) -> float:
    # Without features there is nothing to scale.
    return 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale


def _spread_mask(mask: Array | None, query: Array, key: Array) -> Array | None:
    return None if mask is None else np.broadcast_to(mask, (*query.shape[:3], key.shape[2]))


def forward(query: Array, key: Array, value: Array, dropout_p: float, is_causal: bool, attn_mask: Array | None,
            scale: float | None) -> tuple[Array, Array]:
    """`(softmax(query @ key.T * scale + mask) @ value, logarithm of the softmax's denominators)`."""
    q, k, v = _wide(query), _wide(key), _wide(value)
    mask = None if attn_mask is None else _wide(attn_mask)
    # The result has the query's memory layout: later code often wants the heads side by side again.
    result = empty_like(query, query.dtype)
    if result.shape[3] != value.shape[3]:
        result = np.empty((*query.shape[:3], value.shape[3]), query.dtype)
    if providers.attention(q, k, v):
        made = result if result.dtype is q.dtype and result.strides[3] == 4 else np.empty(result.shape, q.dtype)
        logs = np.empty(query.shape[:3], q.dtype)
        providers.native.attention(q, k, v, _spread_mask(mask, query, key), is_causal, _factor(query, scale), made,
                                   logs)
        if made is not result:
            result[...] = made
        return result, logs
    scores = _scores(q * q.dtype.type(_factor(query, scale)), k)
    shape = (*query.shape[:3], key.shape[2])
    top: Any = 0
    if not _plain_exponentials(scores, shape, is_causal, mask):
        _masked(scores, shape, is_causal, mask)
        # A row that sees nothing has a maximum of -inf; it becomes zero.
        top = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), np.finfo(scores.dtype).min)
        scores -= top
        np.exp(scores, scores)
    total = row_sums(scores.reshape(-1, shape[-1])).reshape(*scores.shape[:-1], 1)
    made = np.matmul(scores, v).reshape(result.shape)
    share = np.where(total == 0, 1, total).reshape(*query.shape[:3], 1)
    logs = (top + np.log(total)).reshape(query.shape[:3])
    if result.dtype == made.dtype:
        np.true_divide(made, share, result)
    else:
        result[...] = made / share
    return result, logs


def _side_by_side(left: Array, right: Array, like: Array) -> Array:
    """`left @ right` as `(batch, heads, rows, features)` with the heads of a row adjacent in memory."""
    batch, heads, rows, features = like.shape
    result = np.empty((batch, rows, heads, features), like.dtype).swapaxes(1, 2)
    if left.shape[:-1] == like.shape[:-1] and left.dtype == like.dtype:
        return np.matmul(left, right, out=result)
    result[...] = np.matmul(left, right).reshape(like.shape)
    return result


def backward(grad: Array, query: Array, key: Array, value: Array, out: Array, logsumexp: Array, dropout_p: float,
             is_causal: bool, attn_mask: Array | None, scale: float | None) -> tuple[Array, Array, Array]:
    """Gradients of query, key and value."""
    pull, q, k, v = _wide(grad), _wide(query), _wide(key), _wide(value)
    heads, factor = key.shape[1], _factor(query, scale)
    mask = None if attn_mask is None else _wide(attn_mask)
    wide_out = _wide(out)
    pull = pull if pull.strides[3] == pull.itemsize else np.ascontiguousarray(pull)
    if providers.attention(q, k, v, pull, wide_out):
        made = [np.empty((a.shape[0], a.shape[2], a.shape[1], a.shape[3]), q.dtype).swapaxes(1, 2)
                for a in (query, key, value)]
        logs = np.ascontiguousarray(logsumexp, q.dtype)
        providers.native.attention_back(q, k, v, _spread_mask(mask, query, key), is_causal, factor, wide_out, logs,
                                        pull, *made)
        return tuple(a if a.dtype is like.dtype else a.astype(like.dtype) for a, like in zip(made, (query, key, value)))
    scaled = q * q.dtype.type(factor)
    weights = _scores(scaled, k)
    shape = (*query.shape[:3], key.shape[2])
    pull = _grouped(pull, heads)
    shared = np.einsum("bhre,bhre->bhr", pull, _grouped(wide_out, heads))[..., None]
    if _plain_exponentials(weights, shape, is_causal, mask):
        # The softmax's denominators go with the rows of the gradient, which are fewer than the weights.
        share = np.exp(-logsumexp).reshape(*weights.shape[:3], 1)
        pull = pull * share
        shared *= share
    else:
        _masked(weights, shape, is_causal, mask)
        weights -= np.where(np.isneginf(logsumexp), np.inf, logsumexp).reshape(*weights.shape[:3], 1)
        np.exp(weights, weights)
    slope = np.matmul(pull, v.swapaxes(-1, -2))
    slope -= shared
    slope *= weights
    return (_side_by_side(slope, k * k.dtype.type(factor), query),
            _side_by_side(slope.swapaxes(-1, -2), _grouped(scaled, heads), key),
            _side_by_side(weights.swapaxes(-1, -2), pull, value))
