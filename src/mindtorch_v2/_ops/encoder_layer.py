"""A transformer's encoder layer in one op, for inference: what `nn.TransformerEncoderLayer` takes where no gradient is
wanted and its parts are the usual ones.

A mask is read as what is hidden, so any number but zero hides; that is where these ops differ from the layer made of
its modules, which adds a mask to the scores.
"""

from __future__ import annotations

from typing import Any

from .._backends.cpu import encoder_layer as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._dtype import bool_
from .._tensor import Tensor

declare(
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
    cpu=kernels.split_heads, where="f",
)


def _softmax_of_seen_backward(grad: Tensor, result: Tensor, dim: int | None) -> Tensor:
    return aten._softmax_backward_data(grad, result, result.ndim - 1 if dim is None else dim, result.dtype)


declare(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    cpu=kernels.masked_softmax, where="f", node="MaskedSoftmaxBackward0", grad={"self": _softmax_of_seen_backward},
)


def _is_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether every row of a mask of what is there has it all in front."""
    if mask._a.dtype != bool:
        raise RuntimeError("_nested_tensor_from_mask: Expected mask to be of ScalarType Bool, but got "
                           f"{pretty(mask.dtype)} instead.")
    if mask.ndim != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.ndim != 3:
        raise RuntimeError(f"Input should be a 3D tensor, N * L * D, but got {t.ndim} dimensions")
    if mask._a.shape != t._a.shape[:2]:
        raise RuntimeError(f"Mask size should match input size: {list(mask._a.shape)} and {list(t._a.shape)}")
    return not bool(aten.any(aten.bitwise_and(aten.bitwise_not(mask[:, :-1]), mask[:, 1:])))


declare("_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool", composite=_is_left_aligned, where="f")


def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any, use_gelu: bool) -> Tensor:
    made = aten.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return aten.gelu(made) if use_gelu else aten.relu_(made)


declare(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) "
    "-> Tensor", composite=_addmm_activation, where="f",
)


def _through(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A linear layer, on all positions at once."""
    batch, steps, width = x._a.shape
    made = aten.addmm(bias, aten.view(x, (batch * steps, width)), aten.t(weight))
    return aten.view(made, (batch, steps, weight._a.shape[0]))


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
    """Query, key and value side by side, without their biases."""
    if query is key and key is value:
        return aten.matmul(query, aten.t(weight))
    return aten.cat([aten.matmul(x, aten.t(w)) for x, w in zip((query, key, value), aten.chunk(weight, 3))], 2)


def _native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None, need_weights: bool, average_attn_weights: bool,
    mask_type: int | None,
) -> tuple[Tensor, Tensor | None]:
    batch, steps, width = query._a.shape
    head = width // num_head
    q, k, v = aten._transform_bias_rescale_qkv(_projected(query, key, value, qkv_weight), qkv_bias, num_head)
    flat = (batch * num_head, steps, head)
    scores = aten.bmm(aten.view(q, flat), aten.transpose(aten.view(k, flat), 1, 2))
    scores = aten.view(scores, (batch, num_head, steps, steps))
    if mask is None:
        seen = aten._softmax(scores, -1, False)
    else:
        seen = aten._masked_softmax(scores, aten.to(mask, bool_), 3, mask_type)
    made = aten.bmm(aten.view(seen, (batch * num_head, steps, steps)), aten.view(v, flat))
    made = aten.permute(aten.view(made, (batch, num_head, steps, head)), (0, 2, 1, 3))
    output = _through(aten.view(aten.contiguous(made), (batch, steps, width)), proj_weight, proj_bias)
    if not need_weights:
        return output, None
    return output, aten.mean(seen, (1,)) if average_attn_weights else seen


declare(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor "
    "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    composite=_native_multi_head_attention, where="f",
)


def _transformer_encoder_layer_fwd(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
    proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor,
    norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor,
    ffn_bias_2: Tensor, mask: Tensor | None, mask_type: int | None,
) -> Tensor:
    batch, steps, _ = src._a.shape
    width = (embed_dim,)
    x = aten.layer_norm(src, width, norm_weight_1, norm_bias_1, eps) if norm_first else src
    x = aten._native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                          mask, False, True, mask_type)[0]
    aten.add_(x, src)
    if not norm_first:
        x = aten.layer_norm(x, width, norm_weight_1, norm_bias_1, eps)
    before = x
    if norm_first:
        x = aten.layer_norm(x, width, norm_weight_2, norm_bias_2, eps)
    flat = aten.view(x, (batch * steps, embed_dim))
    inner = aten._addmm_activation(ffn_bias_1, flat, aten.t(ffn_weight_1), use_gelu=use_gelu)
    x = _through(aten.view(inner, (batch, steps, ffn_weight_1._a.shape[0])), ffn_weight_2, ffn_bias_2)
    aten.add_(x, before)
    return x if norm_first else aten.layer_norm(x, width, norm_weight_2, norm_bias_2, eps)


declare(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor "
    "norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor "
    "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
    composite=_transformer_encoder_layer_fwd, where="f",
)
