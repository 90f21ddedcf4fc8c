"""Multi-head attention."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._dispatch.namespace import aten
from ..._dtype import bool_
from ..._tensor import Tensor
from .activation import softmax
from .dropout import dropout


def _canonical_mask(mask: Tensor | None, mask_name: str, other_type: Any, other_name: str, target_type: Any,
                   check_other: bool = True) -> Tensor | None:
    """The mask as what is added to scores: a true element hides, so it becomes minus infinity."""
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
                      "instead.", stacklevel=3)
    if mask.dtype.is_floating_point:
        return mask
    return aten.masked_fill_(aten.zeros_like(mask, dtype=target_type), mask, -math.inf)


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a tensor that may be missing."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _mha_shape_check(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
                     attn_mask: Tensor | None, num_heads: int) -> bool:
    """Raise if dimensions do not go together; whether there is a batch."""
    if query.ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query "
                             "tensor")
    batched = query.ndim == 3
    kind, n = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.ndim != n or value.ndim != n:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.ndim}-D and "
                             f"{value.ndim}-D tensors respectively")
    if key_padding_mask is not None and key_padding_mask.ndim != n - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found "
                             f"{key_padding_mask.ndim}-D tensor instead")
    if attn_mask is not None:
        if attn_mask.ndim not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                                 f"{attn_mask.ndim}-D tensor instead")
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.ndim == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _unpacked(made: Tensor, parts: int, width: int) -> Tensor:
    """Projections that were computed side by side, one after the other."""
    apart = aten.unsqueeze(aten.unflatten(made, -1, (parts, width)), 0)
    return aten.contiguous(aten.squeeze(aten.transpose(apart, 0, -2), -2))


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> Any:
    """Query, key and value through one matrix; equal inputs are multiplied only once."""
    width = q.shape[-1]
    if k is v:
        if q is k:
            made = _unpacked(aten.linear(q, w, b), 3, width)
            return made[0], made[1], made[2]
        w_q, w_kv = aten.split(w, [width, width * 2])
        b_q, b_kv = (None, None) if b is None else aten.split(b, [width, width * 2])
        first = aten.linear(q, w_q, b_q)
        made = _unpacked(aten.linear(k, w_kv, b_kv), 2, width)
        return first, made[0], made[1]
    biases = (None, None, None) if b is None else aten.chunk(b, 3)
    return tuple(aten.linear(*each) for each in zip((q, k, v), aten.chunk(w, 3), biases))


def _in_projection(q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None,
                   b_k: Tensor | None = None, b_v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through a matrix each, whose width is the query's."""
    width = q.shape[-1]
    for name, tensor, weight in (("query", q, w_q), ("key", k, w_k), ("value", v, w_v)):
        if tuple(weight.shape) != (width, tensor.shape[-1]):
            raise AssertionError(f"expecting {name} weights shape of {(width, tensor.shape[-1])}, but got "
                                 f"{weight.shape}")
    return aten.linear(q, w_q, b_q), aten.linear(k, w_k, b_k), aten.linear(v, w_v, b_v)


def _checked_mask(mask: Tensor, rows: int, keys: int, batch_heads: int) -> Tensor:
    """The attention mask in three dimensions."""
    if mask.ndim == 2:
        if tuple(mask.shape) != (rows, keys):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(rows, keys)}.")
        return aten.unsqueeze(mask, 0)
    if tuple(mask.shape) != (batch_heads, rows, keys):
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be "
                           f"{(batch_heads, rows, keys)}.")
    return mask


def _heads(tensor: Tensor, batch_heads: int, width: int) -> Tensor:
    """`(time, batch, heads * width)` as `(batch * heads, time, width)`."""
    return aten.transpose(aten.view(tensor, (tensor.shape[0], batch_heads, width)), 0, 1)


def _given_heads(tensor: Tensor, name: str, batch_heads: int, width: int) -> Tensor:
    """Keys or values that the caller has projected already."""
    if tensor.shape[0] != batch_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch_heads}, but got {tensor.shape[0]}")
    if tensor.shape[2] != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {tensor.shape[2]}")
    return tensor


def _with_column(mask: Tensor | None) -> Tensor | None:
    """A mask that also shows one more key."""
    return None if mask is None else aten.pad(mask, (0, 1))


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention in several heads of `(time, batch, features)` tensors, with projections before and after.

    Returns the output and, if asked for, the weights, averaged over the heads unless told otherwise.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = (aten.unsqueeze(t, 1) for t in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = aten.unsqueeze(key_padding_mask, 0)
    rows, batch, width = query.shape
    keys = key.shape[0]
    head = width // num_heads
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask",
                                       query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        # The mask is promised to be the causal one, which the attention op knows by itself.
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = is_causal and key_padding_mask is None
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if head * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                                 f"{value.shape[:2]}")
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = () if in_proj_bias is None else aten.chunk(in_proj_bias, 3)
        q, k, v = _in_projection(query, key, value, *weights, *biases)  # type: ignore[arg-type]
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, rows, keys, batch * num_heads)
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{given} is set but {missing} is None")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k, v = (aten.cat([t, aten.repeat(b, (1, batch, 1))]) for t, b in ((k, bias_k), (v, bias_v)))
        attn_mask, key_padding_mask = _with_column(attn_mask), _with_column(key_padding_mask)
    q = _heads(q, batch * num_heads, head)
    k = _heads(k, batch * num_heads, head) if static_k is None else _given_heads(static_k, "static_k",
                                                                                 batch * num_heads, head)
    v = _heads(v, batch * num_heads, head) if static_v is None else _given_heads(static_v, "static_v",
                                                                                 batch * num_heads, head)
    if add_zero_attn:
        zeros = aten.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = aten.cat([k, zeros], 1), aten.cat([v, zeros], 1)
        attn_mask, key_padding_mask = _with_column(attn_mask), _with_column(key_padding_mask)
    keys = k.shape[1]
    if key_padding_mask is not None:
        if key_padding_mask.shape[0] != batch:
            raise AssertionError(f"Expected key_padded_mask.shape[0] to be {batch}, but got "
                                 f"{key_padding_mask.shape[0]}")
        if key_padding_mask.shape[1] != keys:
            raise AssertionError(f"Expected key_padded_mask.shape[1] to be {keys}, but got "
                                 f"{key_padding_mask.shape[1]}")
        spread = aten.expand(aten.view(key_padding_mask, (batch, 1, 1, keys)), (-1, num_heads, -1, -1))
        spread = aten.reshape(spread, (batch * num_heads, 1, keys))
        attn_mask = spread if attn_mask is None else aten.add(attn_mask, spread)
    rate = dropout_p if training else 0.0
    shapes = (batch, num_heads, head, rows, keys)
    attend = _attend_with_weights if need_weights else _attend
    made, seen = attend(q, k, v, attn_mask, rate, is_causal, shapes)
    output = aten.view(aten.linear(made, out_proj_weight, out_proj_bias), (rows, batch, out_proj_weight.shape[0]))
    if not batched:
        output = aten.squeeze(output, 1)
    if seen is None:
        return output, None
    seen = aten.view(seen, (batch, num_heads, rows, keys))
    if average_attn_weights:
        seen = aten.mean(seen, (1,))
    return output, seen if batched else aten.squeeze(seen, 0)


def _attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float, is_causal: bool,
                         shapes: Any) -> tuple[Tensor, Tensor]:
    batch, heads, head, rows, _ = shapes
    if is_causal and mask is None:
        raise AssertionError("FIXME: is_causal not implemented for need_weights")
    scaled = aten.mul(q, math.sqrt(1.0 / head))
    turned = aten.transpose(k, -2, -1)
    scores = aten.bmm(scaled, turned) if mask is None else aten.baddbmm(mask, scaled, turned)
    seen = softmax(scores, dim=-1)
    if rate > 0:
        seen = dropout(seen, p=rate)
    made = aten.reshape(aten.transpose(aten.bmm(seen, v), 0, 1), (rows * batch, heads * head))
    return made, seen


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float, is_causal: bool,
            shapes: Any) -> tuple[Tensor, None]:
    batch, heads, head, rows, keys = shapes
    if mask is not None:
        one_for_all = mask.shape[0] == 1 and mask.ndim == 3
        mask = aten.unsqueeze(mask, 0) if one_for_all else aten.view(mask, (batch, heads, -1, keys))
    q = aten.view(q, (batch, heads, rows, head))
    k, v = (aten.view(t, (batch, heads, keys, head)) for t in (k, v))
    made = aten.scaled_dot_product_attention(q, k, v, mask, rate, is_causal)
    return aten.reshape(aten.permute(made, (2, 0, 1, 3)), (batch * rows, heads * head)), None
