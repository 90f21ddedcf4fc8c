"""Filling arrays with random numbers, in the order in which PyTorch visits their elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.steps import step
from ..overlap import check_shown_once
from .reduce import wide
from .rng import MersenneGenerator
from .rng_checks import COMPLEX, FLOATING, require
from .rng_rounding import fused_multiply_add, narrow

Array = Any


def memory_order(target: Array) -> list[int]:
    """Dimensions from the widest step in memory to the narrowest; equal ones in their own order."""
    return sorted(range(target.ndim), key=lambda d: -target.strides[d])


def fill(target: Array, draw: Callable[[tuple[int, ...]], Array]) -> Array:
    """Fill in the order of memory, which is PyTorch's order for any order of dimensions."""
    if target.flags.c_contiguous:
        target[...] = draw(target.shape)
        return target
    check_shown_once(target)
    inner = target.transpose(memory_order(target))
    inner[...] = draw(inner.shape)
    return target


@step("aten::div", "out")
def divide_into(a: Array, b: Array, out: Array) -> Array:
    """The quotient, in existing memory."""
    return np.true_divide(a, b, out=out)


@step("aten::argmax", "out")
def argmax_into(a: Array, dim: int, keepdim: bool, out: Array) -> Array:
    """The position of the first largest element, in existing memory."""
    return np.argmax(wide(a), dim, out, keepdims=keepdim)


def uniform(target: Array, engine: MersenneGenerator, low: float, high: float) -> Array:
    """`uniform_`."""
    if low == 0 and high == 1 and target.flags.c_contiguous and engine.fill_uniform(target):
        return target
    return fill(target, lambda shape: engine.uniform(shape, target.dtype, low, high))


def normal(target: Array, engine: MersenneGenerator, mean: float, std: float) -> Array:
    """`normal_`. Only contiguous arrays are drawn in blocks of 16; the others take their numbers in pairs."""
    if target.flags.c_contiguous:
        if engine.fill_normal(target, mean, std):
            return target
        return fill(target, lambda shape: engine.normal(shape, target.dtype, mean, std))
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    require(target.dtype, frozenset([*FLOATING, *COMPLEX]), "normal_kernel_cpu")
    parts = target.dtype in COMPLEX
    real = np.dtype(f"f{target.dtype.itemsize // 2}") if parts else target.dtype
    # The variance of a complex number is shared by its two parts.
    spread = std / math.sqrt(2) if parts else std

    def step(count: int) -> np.ndarray:
        return narrow(fused_multiply_add(engine._paired_normals(count), spread, mean), real)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        drawn = engine._draw((*shape, 2) if parts else shape, real, step)
        return drawn.view(target.dtype).reshape(shape) if parts else drawn

    return fill(target, draw)


def integers(target: Array, engine: MersenneGenerator, low: int, high: int | None) -> Array:
    """`random_(from, to)`."""
    if target.flags.c_contiguous and engine.fill_integers(target, low, high):
        return target
    return fill(target, lambda shape: engine.integers(shape, target.dtype, low, high))


def integers_full(target: Array, engine: MersenneGenerator) -> Array:
    """`random_()`."""
    return fill(target, lambda shape: engine.integers_full(shape, target.dtype))


def bernoulli(target: Array, engine: MersenneGenerator, p: float) -> Array:
    """`bernoulli_(p)`."""
    return fill(target, lambda shape: engine.bernoulli(shape, target.dtype, p))


def bernoulli_elementwise(target: Array, engine: MersenneGenerator, p: Array) -> Array:
    """`bernoulli_` with a tensor of probabilities, which broadcasts."""
    check_shown_once(target)
    try:
        spread = np.broadcast_to(p, target.shape)
    except ValueError:
        wrong = next((i for i in range(-1, -min(p.ndim, target.ndim) - 1, -1)
                      if p.shape[i] not in (1, target.shape[i])), -target.ndim)
        raise RuntimeError(
            f"The expanded size of the tensor ({target.shape[wrong]}) must match the existing size ({p.shape[wrong]}) "
            f"at non-singleton dimension {target.ndim + wrong}.  Target sizes: {list(target.shape)}.  Tensor sizes: "
            f"{list(p.shape)}") from None
    order = memory_order(target)
    target.transpose(order)[...] = engine.bernoulli_elementwise(spread.transpose(order), target.dtype)
    return target


def exponential(target: Array, engine: MersenneGenerator, lambd: float) -> Array:
    """`exponential_`."""
    return fill(target, lambda shape: engine.exponential(shape, target.dtype, lambd))


def geometric(target: Array, engine: MersenneGenerator, p: float) -> Array:
    """`geometric_`."""
    return fill(target, lambda shape: engine.geometric(shape, target.dtype, p))


def log_normal(target: Array, engine: MersenneGenerator, mean: float, std: float) -> Array:
    """`log_normal_`."""
    return fill(target, lambda shape: engine.log_normal(shape, target.dtype, mean, std))


def cauchy(target: Array, engine: MersenneGenerator, median: float, sigma: float) -> Array:
    """`cauchy_`."""
    return fill(target, lambda shape: engine.cauchy(shape, target.dtype, median, sigma))
