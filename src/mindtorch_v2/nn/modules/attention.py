"""Multi-head attention as a layer."""

from __future__ import annotations

from typing import Any

from ..._attention_backends import FastPath
from ..._autograd.grad_mode import is_grad_enabled
from ..._device import DeviceLike
from ..._dispatch.namespace import aten, public
from ..._dtype import DType
from ..._tensor import Tensor
from .. import functional as F
from .. import init
from ..functional.attention import _canonical_mask, _none_or_dtype
from ._affine import parameter
from ._homes import settle
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention in several heads, with projections before and after.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(5, 2, 4)
    >>> output, weights = torch.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 5, 5]))
    """

    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: DeviceLike = None,
                 dtype: DType | None = None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0, got "
                             f"embed_dim={embed_dim} and num_heads={num_heads} instead")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter((3 * embed_dim, embed_dim), device, dtype)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter((embed_dim, embed_dim), device, dtype)
            self.k_proj_weight = parameter((embed_dim, self.kdim), device, dtype)
            self.v_proj_weight = parameter((embed_dim, self.vdim), device, dtype)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter((3 * embed_dim,), device, dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = parameter((1, 1, embed_dim), device, dtype)
            self.bias_v = parameter((1, 1, embed_dim), device, dtype)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # type: ignore[arg-type]
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Models that were saved before inputs could differ in size do not say so.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """The output and, with `need_weights`, the attention weights."""
        given = (attn_mask, key_padding_mask)
        key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask",
                                          _none_or_dtype(attn_mask), "attn_mask", query.dtype)
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if self._is_one_op(query, key, value, given):
            mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
            return public._native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
                self.out_proj.weight, self.out_proj.bias, mask, need_weights, average_attn_weights, kind)
        turned = self.batch_first and query.ndim == 3
        if turned:
            # Equal inputs stay one tensor, so that they are projected together.
            first = aten.transpose(query, 1, 0)
            second = first if key is query else aten.transpose(key, 1, 0)
            value = second if value is key else aten.transpose(value, 1, 0)
            query, key = first, second
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return (aten.transpose(output, 1, 0) if turned else output), weights

    def _is_one_op(self, query: Tensor, key: Tensor, value: Tensor, masks: tuple[Tensor | None, Tensor | None]) -> bool:
        """Whether this is plain self-attention at inference, for which there is one op."""
        if self.training or not FastPath.enabled or query is not key or key is not value or query.ndim != 3:
            return False
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if weight is None or bias is None or query.dtype is not weight.dtype or query.dtype is not bias.dtype:
            return False
        if not self.batch_first or self.num_heads % 2 or self.bias_k is not None or self.add_zero_attn:
            return False
        if any(mask is not None and mask.dtype.is_floating_point for mask in masks):
            return False
        used = (query, weight, bias, self.out_proj.weight, self.out_proj.bias)
        return not (is_grad_enabled() and any(t is not None and t.requires_grad for t in used))

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                    query: Tensor) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and what it covers: 1 for the keys of each sequence, 2 for every score."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, steps, _ = query.shape
        if attn_mask.ndim == 3:
            merged = aten.view(attn_mask, (batch, -1, steps, steps))
        else:
            merged = aten.expand(aten.view(attn_mask, (1, 1, steps, steps)), (batch, self.num_heads, -1, -1))
        if key_padding_mask is not None:
            keys = aten.expand(aten.view(key_padding_mask, (batch, 1, 1, steps)), (-1, self.num_heads, -1, -1))
            merged = aten.add(merged, keys)
        return merged, 2


settle(__name__)
