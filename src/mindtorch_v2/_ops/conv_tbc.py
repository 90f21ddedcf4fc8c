"""Convolution along time of (time, batch, channel) input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dispatch.registry import declare

Array = Any


def _windows(x: Array, width: int, pad: int) -> Array:
    """Views of the padded input: (time out, width, batch, channels in)."""
    padded = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(padded, width, 0), -1, 1)


def _conv_tbc(x: Array, weight: Array, bias: Array, pad: int) -> Array:
    if x.ndim != 3 or weight.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel" if x.ndim != 3
                           else "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if x.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    made = np.einsum("tkbi,kio->tbo", _windows(x, weight.shape[0], pad), weight, optimize=True) + bias
    return made.astype(x.dtype, order="C")


def _conv_tbc_backward(grad: Array, x: Array, weight: Array, bias: Array, pad: int) -> tuple[Array, Array, Array]:
    width = weight.shape[0]
    first = np.zeros((x.shape[0] + 2 * pad, *x.shape[1:]), x.dtype)
    for k in range(width):
        first[k:k + grad.shape[0]] += grad @ weight[k].T
    second = np.einsum("tkbi,tbo->kio", _windows(x, width, pad), grad, optimize=True)
    return first[pad:pad + x.shape[0]], second.astype(weight.dtype), grad.sum((0, 1))


def _again(grads: Any) -> Any:
    raise NotImplementedError("the second derivative of conv_tbc is not implemented; conv1d has one")


declare("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", cpu=_conv_tbc, where="f",
        grad={("self", "weight", "bias"): lambda grad, self, weight, bias, pad: aten.conv_tbc_backward(
            grad, self, weight, bias, pad)})
declare("conv_tbc_backward(Tensor grad_output, Tensor input, Tensor weight, Tensor bias, int pad) -> "
        "(Tensor, Tensor, Tensor)", cpu=_conv_tbc_backward, where="n",
        grad={("grad_output", "input", "weight", "bias"): _again})
