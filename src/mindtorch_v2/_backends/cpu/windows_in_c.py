"""Convolution of float32 lines, images and volumes and its gradients by the C kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import providers
from .memory import empty

Array = Any
Sizes = tuple[int, ...]


def forward(x: Array, weight: Array, bias: Array | None, window: Any, groups: int) -> Array | None:
    """The convolution, or None."""
    out = window.output(x.shape[2:])
    if not providers.windows(x.shape, out, window, x, weight):
        return None
    made = empty((x.shape[0], weight.shape[0], *out), x.dtype)
    whole = np.ascontiguousarray
    providers.native.convolve(made, whole(x), whole(weight), None if bias is None else whole(bias), window.stride,
                              window.padding, window.dilation, groups)
    return made


def input_gradient(grad: Array, weight: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the input, which has this shape, or None."""
    if not providers.windows(shape, grad.shape[2:], window, grad, weight):
        return None
    made = empty(tuple(shape), grad.dtype)
    providers.native.convolve_input(made, np.ascontiguousarray(grad), np.ascontiguousarray(weight), window.stride,
                                    window.padding, window.dilation, groups)
    return made


def weight_gradient(grad: Array, x: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the weight, which has this shape, or None."""
    if not providers.windows(x.shape, grad.shape[2:], window, grad, x):
        return None
    made = empty(tuple(shape), grad.dtype)
    providers.native.convolve_back(made, np.ascontiguousarray(grad), np.ascontiguousarray(x), window.stride,
                                   window.padding, window.dilation, groups)
    return made
