"""Pixel and channel shuffles, unfolding into windows and folding back."""

from __future__ import annotations

from .._backends.cpu import rearrange as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare

declare("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", cpu=kernels.pixel_shuffle, where="f",
        grad={"self": lambda grad, upscale_factor: aten.pixel_unshuffle(grad, upscale_factor)})
declare("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", cpu=kernels.pixel_unshuffle, where="f",
        grad={"self": lambda grad, downscale_factor: aten.pixel_shuffle(grad, downscale_factor)})
declare(
    "native_channel_shuffle(Tensor self, int groups) -> Tensor", cpu=kernels.channel_shuffle, where="f",
    node="ChannelShuffleBackward0",
    grad={"self": lambda grad, self_shape, groups: aten.channel_shuffle(grad, self_shape[1] // groups)},
)
declare("channel_shuffle(Tensor self, int groups) -> Tensor", where="f",
        composite=lambda self, groups: aten.native_channel_shuffle(self, groups))

declare(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    cpu=kernels.im2col, where="n", node="Im2ColBackward0",
    grad={"self": lambda grad, self_shape, kernel_size, dilation, padding, stride: aten.col2im(
        grad, self_shape[-2:], kernel_size, dilation, padding, stride)},
)
declare(
    "col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
    "Tensor", cpu=kernels.col2im, where="n", node="Col2ImBackward0",
    grad={"self": lambda grad, kernel_size, dilation, padding, stride: aten.im2col(
        grad, kernel_size, dilation, padding, stride)},
)
