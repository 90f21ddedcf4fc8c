"""Kernels that do a whole optimizer step of one parameter: they write into the given arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import providers

Array = Any

# Elements of a block: its arrays and the intermediate results of a step stay in the processor's cache.
BLOCK = 16384


def blocks(*arrays: Array | None) -> Iterator[Any]:
    """Views of arrays of one shape, block by block; None stays None."""
    given = [a for a in arrays if a is not None]
    size = given[0].size
    if size <= BLOCK or providers.parameters(*arrays) or not all(a.flags.c_contiguous for a in given):
        yield arrays
        return
    flat = [None if a is None else a.reshape(-1) for a in arrays]
    for start in range(0, size, BLOCK):
        yield tuple(None if a is None else a[start:start + BLOCK] for a in flat)


def working(a: Array) -> Array:
    """The contents in the dtype in which steps are computed: at least float32."""
    return a.astype(np.float32) if a.dtype.itemsize < 4 else a


def gradient(grad: Array, maximize: bool, scale: Array | None) -> Array:
    """The gradient to descend, in the working dtype. Undoing a loss scale also changes the stored gradient."""
    result = working(grad)
    if scale is not None:
        result = result / np.asarray(scale, result.dtype)
        grad[...] = result
    return -result if maximize else result


def sgd(parameter: Array, grad: Array, buffer: Array | None, weight_decay: float, momentum: float, lr: float,
        dampening: float, nesterov: bool, maximize: bool, first: bool, scale: Array | None) -> None:
    """One step of stochastic gradient descent."""
    if scale is None and providers.parameters(parameter, grad, buffer):
        providers.native.sgd(parameter, grad, buffer, lr, momentum, 1 - dampening, weight_decay, nesterov, maximize,
                             first)
        return
    weight = working(parameter)
    kind = weight.dtype.type
    change = gradient(grad, maximize, scale)
    if weight_decay != 0:
        change = change + weight * kind(weight_decay)
    if buffer is not None:
        moving = change if first else working(buffer) * kind(momentum) + change * kind(1 - dampening)
        buffer[...] = moving
        change = change + moving * kind(momentum) if nesterov else moving
    parameter[...] = weight - change * kind(lr)


def adam(parameter: Array, grad: Array, average: Array, square: Array, largest: Array | None, step: float, lr: float,
         beta1: float, beta2: float, weight_decay: float, eps: float, maximize: bool, decoupled: bool,
         scale: Array | None) -> None:
    """One step of Adam, or with `decoupled` of AdamW."""
    if scale is None and providers.parameters(parameter, grad, average, square, largest):
        providers.native.adam(parameter, grad, average, square, largest, lr / (1 - beta1**step), 1 - beta1, beta2,
                              1 - beta2, (1 - beta2**step) ** -0.5, eps, weight_decay, 1 - lr * weight_decay, decoupled,
                              maximize)
        return
    weight = working(parameter)
    kind = weight.dtype.type
    change = gradient(grad, maximize, scale)
    if weight_decay != 0:
        if decoupled:
            weight = weight * kind(1 - lr * weight_decay)
        else:
            change = change + weight * kind(weight_decay)
    moving = working(average)
    moving = moving + kind(1 - beta1) * (change - moving)
    squares = working(square) * kind(beta2) + kind(1 - beta2) * change * change
    average[...] = moving
    square[...] = squares
    if largest is not None:
        squares = np.maximum(working(largest), squares)
        largest[...] = squares
    denominator = np.sqrt(squares) / kind((1 - beta2**step) ** 0.5) + kind(eps)
    parameter[...] = weight - kind(lr / (1 - beta1**step)) * moving / denominator


def adagrad(parameter: Array, grad: Array, total: Array, step: float, lr: float, lr_decay: float,
            weight_decay: float, eps: float, maximize: bool, scale: Array | None) -> None:
    """One step of Adagrad."""
    rate = lr / (1 + (step - 1) * lr_decay)
    if scale is None and providers.parameters(parameter, grad, total):
        providers.native.adagrad(parameter, grad, total, rate, eps, weight_decay, maximize)
        return
    weight = working(parameter)
    kind = weight.dtype.type
    change = gradient(grad, maximize, scale)
    if weight_decay != 0:
        change = change + weight * kind(weight_decay)
    squares = working(total) + change * change
    total[...] = squares
    parameter[...] = weight - kind(rate) * change / (np.sqrt(squares) + kind(eps))
