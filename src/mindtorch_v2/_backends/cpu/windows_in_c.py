"""Convolution of float32 images and its gradients by the C kernels.

Lines are images of height 1. Where groups have few channels, the gradient of the input is a convolution too, of the
output's gradient with the turned weight; elsewhere it is a product of matrices that is added up in the images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import providers
from .memory import empty

Array = Any
Sizes = tuple[int, ...]
FEW_CHANNELS = 8  # of a group of the output


def _flat(sizes: Sizes, first: int) -> Sizes:
    """Two numbers, the first one made up for lines."""
    return sizes if len(sizes) == 2 else (first, *sizes)


def turned_weight(weight: Array, groups: int) -> Array:
    """The weight for `Window.turned`: reversed in space, input and output channels exchanged within a group."""
    out, per_group, *kernel = weight.shape
    reverse = weight[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
    grouped = reverse.reshape(groups, out // groups, per_group, *kernel).swapaxes(1, 2)
    return np.ascontiguousarray(grouped.reshape(groups * per_group, out // groups, *kernel))


def _image(a: Array) -> Array:
    a = np.ascontiguousarray(a)
    return a if a.ndim == 4 else a[:, :, None, :]


def _moves(window: Any) -> tuple[Sizes, Sizes, Sizes]:
    return _flat(window.stride, 1), _flat(window.padding, 0), _flat(window.dilation, 1)


def _convolve(made: Array, x: Array, weight: Array, bias: Array | None, moves: tuple[Sizes, ...], groups: int) -> None:
    providers.native.convolve(made, x, weight, bias, *moves, groups)


def forward(x: Array, weight: Array, bias: Array | None, window: Any, groups: int) -> Array | None:
    """The convolution, or None."""
    out = window.output(x.shape[2:])
    if not providers.windows(x.shape, out, window, groups, x, weight):
        return None
    made = empty((x.shape[0], weight.shape[0], *out), x.dtype)
    _convolve(_image(made), _image(x), _image(weight), None if bias is None else np.ascontiguousarray(bias),
              _moves(window), groups)
    return made


def input_gradient(grad: Array, weight: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the input, which has this shape, or None."""
    if not providers.windows(shape, grad.shape[2:], window, groups, grad, weight):
        return None
    if weight.shape[0] // groups < FEW_CHANNELS and window.can_turn(shape[2:], grad.shape[2:]):
        return forward(grad, turned_weight(weight, groups), None, window.turned(), groups)
    made = empty(tuple(shape), grad.dtype)
    providers.native.convolve_input(_image(made), _image(grad), _image(weight), *_moves(window), groups)
    return made


def weight_gradient(grad: Array, x: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the weight, which has this shape, or None."""
    if not providers.windows(x.shape, grad.shape[2:], window, groups, grad, x):
        return None
    made = empty(tuple(shape), grad.dtype)
    providers.native.convolve_back(_image(made), _image(grad), _image(x), *_moves(window), groups)
    return made
