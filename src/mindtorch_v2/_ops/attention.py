"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from .._attention_backends import ALLOWED, FLASH, MATH
from .._backends.base import has_kernel
from .._backends.cpu import attention as kernels
from .._backends.cpu.compare import put_where
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._dtype import DType, bfloat16, bool_, float16, float32
from .._tensor import Tensor, wrap_known


def _no_second_gradient(grads: Any) -> Any:
    raise RuntimeError("derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented")


FUSED = declare(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)",
    cpu=kernels.forward, where="f", differentiable=(0,),
    grad={("query", "key", "value"): lambda grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask,
          scale: aten._scaled_dot_product_flash_attention_for_cpu_backward(
              grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)},
)
declare(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
    "(Tensor, Tensor, Tensor)", cpu=kernels.backward, where="n",
    grad={("grad_out", "query", "key", "value"): _no_second_gradient},
)


def _safe_softmax(array: Any, dim: int, dtype: DType | None) -> Any:
    """Through ops, as PyTorch does, so that a profile shows where the time goes."""
    scores = wrap_known(array)
    made = aten.softmax(scores, dim, dtype)
    # If everything is masked, the softmax is 0/0, and the result is zero.
    nothing = aten.all(aten.isneginf(scores), dim, True)
    zero = aten.scalar_tensor(0.0, dtype=made.dtype, device=made.device)
    return put_where(made._a, nothing._a, zero._a)


declare(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", cpu=_safe_softmax, where="f",
    grad={"self": lambda grad, result, dim: aten._softmax_backward_data(grad, result, dim, result.dtype)},
)


def _additive(mask: Tensor, dtype: DType | None) -> Tensor:
    """A mask of what may be seen, as what is added to the scores."""
    return aten.where(mask, 0.0, aten.scalar_tensor(-math.inf, dtype=dtype, device=mask.device))


def _repeat_heads(query: Tensor, tensor: Tensor) -> Tensor:
    count, heads = query._a.shape[-3], tensor._a.shape[-3]
    if heads == 0 or count % heads:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
    return tensor if count == heads else aten.repeat_interleave(tensor, count // heads, -3)


def _attention_math(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
                    is_causal: bool, dropout_mask: Tensor | None, scale: float | None,
                    enable_gqa: bool) -> tuple[Tensor, Tensor]:
    origin = query.dtype
    if origin in (float16, bfloat16):
        query, key, value = (aten.to(t, float32) for t in (query, key, value))
        attn_mask = attn_mask if attn_mask is None or attn_mask.dtype is bool_ else aten.to(attn_mask, float32)
    # Without features there is nothing to scale.
    factor = 1 / math.sqrt(query._a.shape[-1] or 1) if scale is None else scale
    # Both factors get the root of the scale, which keeps the products small; the sign goes with the first.
    root = math.sqrt(abs(factor))
    query = aten.mul__Scalar(query, math.copysign(root, factor))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")
        attn_mask = aten.tril(aten.ones((query._a.shape[-2], key._a.shape[-2]), dtype=bool_, device=query.device))
    if attn_mask is not None and attn_mask.dtype is bool_:
        attn_mask = _additive(attn_mask, query.dtype)
    if enable_gqa:
        key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    scores = aten.matmul(query, aten.mul__Scalar(aten.transpose(key, -2, -1), root))
    if attn_mask is not None:
        scores = aten.add_(scores, attn_mask) if query.ndim >= attn_mask.ndim else aten.add(scores, attn_mask)
    weights = aten._safe_softmax(scores, -1)
    seen = weights
    if dropout_p > 0:
        if dropout_mask is not None:
            seen = aten.mul(aten.masked_fill(weights, aten.logical_not(dropout_mask), 0.0), 1 / (1 - dropout_p))
        else:
            seen = weights = aten.dropout(weights, dropout_p, True)
    weights = aten.to(weights, origin)
    return aten.to(aten.matmul(seen, value), origin), weights


ARGUMENTS = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False"
declare(f"_scaled_dot_product_attention_math({ARGUMENTS}, Tensor? dropout_mask=None, *, float? scale=None, "
        "bool enable_gqa=False) -> (Tensor, Tensor)", composite=_attention_math, where="f")


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float) -> None:
    if not query.dtype is key.dtype is value.dtype:
        names = [pretty(t.dtype).lower() for t in (query, key, value)]
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} "
                           f"key.dtype: {names[1]} and value.dtype: {names[2]} instead.")
    if query.device != key.device or query.device != value.device:
        raise RuntimeError("Expected query, key, and value to have the same device type, but got query.device: "
                           f"{query.device} key.device: {key.device} and value.device: {value.device} instead.")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                           f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead.")
    if attn_mask is not None and attn_mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                           f"attn_mask.dtype: {pretty(attn_mask.dtype).lower()} and  query.dtype: "
                           f"{pretty(query.dtype).lower()} instead.")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")


def _mask_fits(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    if mask.requires_grad or mask.ndim not in (2, 4):
        return False
    wanted = (*query._a.shape[:3], key._a.shape[2])
    return all(found in (1, extent) for found, extent in zip(mask._a.shape, wanted[-mask.ndim:]))


def _can_fuse(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float,
              enable_gqa: bool) -> bool:
    """Whether the single op can do it: four dimensions, one head size, no dropout, a mask without a gradient."""
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4 or dropout_p > 0:
        return False
    q, k, v = query._a.shape, key._a.shape, value._a.shape
    if not (q[0] == k[0] == v[0] and k[1:3] == v[1:3] and q[3] == k[3] == v[3]) or 0 in (*q, *k):
        return False
    if not query.dtype.is_floating_point:
        return False
    heads = k[1] == q[1] or (enable_gqa and q[1] % k[1] == 0)
    return heads and (mask is None or _mask_fits(mask, query, key))


def _choice(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
            scale: float | None, enable_gqa: bool) -> int:
    """The number of the way that `scaled_dot_product_attention` takes, -1 if none of the allowed ones can."""
    if FLASH in ALLOWED.numbers and has_kernel(FUSED, query._a) and _can_fuse(query, key, value, attn_mask, dropout_p,
                                                                              enable_gqa):
        return FLASH
    return MATH if MATH in ALLOWED.numbers else -1


def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
               scale: float | None, enable_gqa: bool) -> Tensor:
    _check(query, key, value, attn_mask, dropout_p)
    if is_causal and hasattr(attn_mask, "variant"):
        raise ValueError("CausalBias should not be used with causal=True")
    if attn_mask is not None and attn_mask.dtype is bool_:
        attn_mask = _additive(attn_mask, query.dtype)
    choice = _choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if choice == FLASH:
        return aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                attn_mask=attn_mask, scale=scale)[0]
    if choice != MATH:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found. This is likely due to "
                           "turning off both the math kernel and the fused kernels.")
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None,
                                                   scale=scale, enable_gqa=enable_gqa)[0]


declare(f"scaled_dot_product_attention({ARGUMENTS}, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        composite=_attention, where="n")
declare(f"_fused_sdp_choice({ARGUMENTS}, *, float? scale=None, bool enable_gqa=False) -> int", composite=_choice,
        where="f")
