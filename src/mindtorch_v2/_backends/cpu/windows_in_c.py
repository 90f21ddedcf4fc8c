"""Convolution of float32 images and its gradients by the C kernels.

Lines are images of height 1. The gradient of the input is a convolution too: for windows that step by one of the
output's gradient with the turned weight, otherwise one such convolution for every phase of the step, with the taps that
see it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from . import providers
from .memory import empty

Array = Any
Sizes = tuple[int, ...]


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
    if not providers.windows(shape, grad.shape[2:], window, groups, grad, weight) or max(window.dilation) > 1:
        return None
    if window.can_turn(shape[2:], grad.shape[2:]):
        return forward(grad, turned_weight(weight, groups), None, window.turned(), groups)
    made = empty(tuple(shape), grad.dtype)
    whole, image, turned = _image(made), _image(grad), _image(turned_weight(weight, groups))
    stride, padding, _ = _moves(window)
    for phase in product(*map(range, stride)):
        _one_phase(whole, image, turned, phase, stride, padding, groups)
    return made


def _one_phase(whole: Array, grad: Array, turned: Array, phase: Sizes, stride: Sizes, padding: Sizes,
               groups: int) -> None:
    """The gradient of the elements at `phase` of every step: of the taps, they are seen by every `stride`th alone."""
    target = whole[:, :, phase[0]::stride[0], phase[1]::stride[1]]
    taps, ends = [], []
    for dim in range(2):
        kernel, step = turned.shape[2 + dim], stride[dim]
        # Element phase + step * i is seen by window o through tap t if phase + step * i + padding = step * o + t.
        first = (phase[dim] + padding[dim]) % step
        count = len(range(first, kernel, step))
        taps.append(slice((kernel - 1 - first) % step if count else kernel, None, step))
        ends.append(((phase[dim] + padding[dim]) // step, count))
    part = turned[:, :, taps[0], taps[1]]
    if not part.size or not target.size:
        target[...] = 0
        return
    # Position i needs the gradient at shift + i - count + 1 up to shift + i: cut or fill the gradient to that.
    pieces, sizes = [], []
    for dim, (shift, count) in enumerate(ends):
        begin, end = shift - count + 1, shift + target.shape[2 + dim]
        extent = grad.shape[2 + dim]
        pieces.append((slice(max(begin, 0), max(min(end, extent), 0)), max(-begin, 0)))
        sizes.append(end - begin)
    seen = np.zeros((*grad.shape[:2], *sizes), grad.dtype)
    (rows, down), (columns, across) = pieces
    source = grad[:, :, rows, columns]
    seen[:, :, down: down + source.shape[2], across: across + source.shape[3]] = source
    made = np.empty(target.shape, grad.dtype)
    _convolve(made, seen, np.ascontiguousarray(part), None, ((1, 1), (0, 0), (1, 1)), groups)
    target[...] = made


def weight_gradient(grad: Array, x: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the weight, which has this shape, or None."""
    if not providers.windows(x.shape, grad.shape[2:], window, groups, grad, x):
        return None
    made = empty(tuple(shape), grad.dtype)
    providers.native.convolve_back(_image(made), _image(grad), _image(x), *_moves(window), groups)
    return made
