"""Transformers: encoder, decoder, and both."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._attention_backends import FastPath
from ..._autograd.grad_mode import is_grad_enabled
from ..._device import DeviceLike
from ..._dispatch.namespace import aten, public
from ..._dtype import DType, bool_
from ..._tensor import Tensor
from .. import functional as F
from .. import init
from ..functional.attention import _canonical_mask, _none_or_dtype
from ._homes import elsewhere
from .container import ModuleList
from .module import Module
from .normalization import LayerNorm
from .transformer_layers import (  # noqa: F401 (libraries take the function from here)
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    _get_activation_fn,
)

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]


def _generate_square_subsequent_mask(sz: int, device: DeviceLike = None, dtype: DType | None = None) -> Tensor:
    """Minus infinity above the diagonal, else zero."""
    return aten.triu(aten.full((sz, sz), -math.inf, device=device, dtype=dtype), 1)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether attention may be told to hide the future by itself: if the caller says so, or the mask does just that."""
    if is_causal is not None or mask is None:
        return is_causal is True
    sought = _generate_square_subsequent_mask(mask.shape[-2] if size is None else size, mask.device, mask.dtype)
    return mask.shape == sought.shape and bool(aten.all(aten.eq(mask, sought)))


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """How many steps there are."""
    return src.shape[1 if src.ndim == 3 and batch_first else 0]


def _get_clones(module: Module, N: int) -> ModuleList:
    """Independent copies of a layer."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _nesting_problem(layer: Any) -> str:
    """Why PyTorch would not leave out padding while it computes this layer; empty if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    problems = (
        (layer.norm_first, "encoder_layer.norm_first was True"),
        (not attention.batch_first, "encoder_layer.self_attn.batch_first was not True"
                                    "(use batch_first for better inference performance)"),
        (not attention._qkv_same_embed_dim, "encoder_layer.self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "encoder_layer.self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "encoder_layer.activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "encoder_layer.self_attn.num_heads is odd"),
    )
    return next((text for found, text in problems if found), "")


class TransformerEncoder(Module):
    """A stack of encoder layers."""

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        problem = _nesting_problem(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not problem
        if enable_nested_tensor and problem:
            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {problem}",
                          stacklevel=2)

    def _leaves_out_padding(self, source: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        """Whether PyTorch computes this without the padding, which makes the output zero there.

        It does so when no gradient is wanted and all padding is at the end.
        """
        first = self.layers[0]
        if not FastPath.enabled or not self.use_nested_tensor or first.training or padding is None or source.ndim != 3:
            return False
        if self.mask_check and not public._nested_tensor_from_mask_left_aligned(source, aten.logical_not(padding)):
            return False
        if mask is not None:
            return False
        return not (is_grad_enabled() and (source.requires_grad or any(p.requires_grad for p in first.parameters())))

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        """The source through all layers."""
        hidden = src_key_padding_mask
        padding = _canonical_mask(src_key_padding_mask, "src_key_padding_mask", _none_or_dtype(mask),
                                 "mask", src.dtype)
        mask = _canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        leaves_out = self._leaves_out_padding(src, mask, padding)
        batch_first = self.layers[0].self_attn.batch_first
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if leaves_out and hidden is not None:
            absent = hidden if hidden.dtype is bool_ else aten.isneginf(hidden)
            output = aten.masked_fill(output, aten.unsqueeze(absent, -1), 0.0)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        """The target through all layers, which also look at the memory."""
        size = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, size)
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                           tgt_key_padding_mask=tgt_key_padding_mask,
                           memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                           memory_is_causal=memory_is_causal)
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder that looks at what the encoder made.

    >>> import mindtorch_v2 as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(torch.ones(3, 5, 8), torch.ones(3, 4, 8)).shape
    torch.Size([3, 4, 8])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = F.relu, custom_encoder: Any = None,
                 custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: DeviceLike = None,
                 dtype: DType | None = None) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                 device, dtype)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*sizes)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            last = TransformerDecoderLayer(*sizes)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)
            self.decoder = TransformerDecoder(last, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        """The source through the encoder, the target through the decoder."""
        if src.ndim == 3:
            at = 0 if self.batch_first else 1
            if src.shape[at] != tgt.shape[at]:
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: DeviceLike = None, dtype: DType | None = None) -> Tensor:
        """The mask that hides the future: minus infinity above the diagonal, else zero."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)


__getattr__ = elsewhere(__name__)
