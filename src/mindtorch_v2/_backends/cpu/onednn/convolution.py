"""Convolution of float32 arrays and its gradients by oneDNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..memory import empty
from .layouts import (
    BIAS,
    DESTINATION,
    DESTINATION_GRADIENT,
    DESTINATION_GRADIENT_LAYOUT,
    DESTINATION_LAYOUT,
    FORWARD_TRAINING,
    SOURCE,
    SOURCE_GRADIENT,
    SOURCE_GRADIENT_LAYOUT,
    SOURCE_LAYOUT,
    WEIGHTS,
    WEIGHTS_GRADIENT,
    WEIGHTS_GRADIENT_LAYOUT,
    WEIGHTS_LAYOUT,
)
from .library import Library, library
from .memory import Array, free, numbers, plain
from .plan import Plan, Role, planned

DIRECT = 1
FLOAT32 = np.dtype(np.float32)

Sizes = tuple[int, ...]


def _weight_dims(weight: Sizes, groups: int) -> Sizes:
    return weight if groups == 1 else (groups, weight[0] // groups, *weight[1:])


def _moves(window: Any) -> tuple[Any, Any, Any, Any]:
    return (numbers(window.stride), numbers([d - 1 for d in window.dilation]), numbers(window.padding),
            numbers(window.padding))


def _layout(window: Any) -> Callable[[Library, Sizes], Any]:
    """How arrays are described: a 1x1 kernel is a matrix product, which no other layout makes faster."""
    return plain if window.is_point() else free


def _forward_descriptor(found: Library, x: Sizes, weight: Sizes, out: Sizes, window: Any, bias: bool) -> Any:
    vector, layout = plain(found, (out[1],)) if bias else None, _layout(window)
    return found.describe("dnnl_convolution_forward_primitive_desc_create", found.engine, FORWARD_TRAINING, DIRECT,
                          layout(found, x), layout(found, weight), vector, layout(found, out), *_moves(window), None)


@planned
def _forward_plan(found: Library, x: Sizes, weight: Sizes, out: Sizes, window: Any, groups: int, bias: bool) -> Plan:
    weights = _weight_dims(weight, groups)
    descriptor = _forward_descriptor(found, x, weights, out, window, bias)
    roles = [Role(SOURCE, SOURCE_LAYOUT, 0, False), Role(WEIGHTS, WEIGHTS_LAYOUT, 0, False),
             Role(DESTINATION, DESTINATION_LAYOUT, 0, True), Role(BIAS, WEIGHTS_LAYOUT, 1, False)]
    shapes: list[Sizes] = [x, weights, out, (out[1],)]
    count = 4 if bias else 3
    return Plan(found, descriptor, roles[:count], shapes[:count])


@planned
def _input_plan(found: Library, x: Sizes, weight: Sizes, out: Sizes, window: Any, groups: int) -> Plan:
    weights = _weight_dims(weight, groups)
    hint, layout = _forward_descriptor(found, x, weights, out, window, False), _layout(window)
    descriptor = found.describe("dnnl_convolution_backward_data_primitive_desc_create", found.engine, DIRECT,
                                layout(found, x), layout(found, weights), layout(found, out), *_moves(window), hint,
                                None)
    roles = [Role(DESTINATION_GRADIENT, DESTINATION_GRADIENT_LAYOUT, 0, False), Role(WEIGHTS, WEIGHTS_LAYOUT, 0, False),
             Role(SOURCE_GRADIENT, SOURCE_GRADIENT_LAYOUT, 0, True)]
    return Plan(found, descriptor, roles, [out, weights, x])


@planned
def _weight_plan(found: Library, x: Sizes, weight: Sizes, out: Sizes, window: Any, groups: int) -> Plan:
    weights = _weight_dims(weight, groups)
    hint, layout = _forward_descriptor(found, x, weights, out, window, False), _layout(window)
    descriptor = found.describe("dnnl_convolution_backward_weights_primitive_desc_create", found.engine, DIRECT,
                                layout(found, x), layout(found, weights), None, layout(found, out), *_moves(window),
                                hint, None)
    roles = [Role(SOURCE, SOURCE_LAYOUT, 0, False), Role(DESTINATION_GRADIENT, DESTINATION_GRADIENT_LAYOUT, 0, False),
             Role(WEIGHTS_GRADIENT, WEIGHTS_GRADIENT_LAYOUT, 0, True)]
    return Plan(found, descriptor, roles, [x, out, weights])


def _suits(x: Sizes, out: Sizes, window: Any, *arrays: Array) -> bool:
    """Whether the library can do it: float32, and windows that are those of a forward convolution."""
    return (all(a.dtype is FLOAT32 for a in arrays) and library() is not None and window.output(x[2:]) == out[2:]
            and min(out) > 0 and min(x) > 0)


def _made(plan: Plan | None, shape: Sequence[int], order: Callable[[Array], Sequence[Array]]) -> Array | None:
    if plan is None:
        return None
    made = empty(tuple(shape), FLOAT32)
    plan.run(*order(made))
    return made


def forward(x: Array, weight: Array, bias: Array | None, window: Any, groups: int) -> Array | None:
    """The convolution, or None."""
    out = (x.shape[0], weight.shape[0], *window.output(x.shape[2:]))
    if not _suits(x.shape, out, window, x, weight):
        return None
    plan = _forward_plan(x.shape, weight.shape, out, window, groups, bias is not None)
    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)
    extra = () if bias is None else (np.ascontiguousarray(bias),)
    return _made(plan, out, lambda made: (x, weight, made, *extra))


def input_gradient(grad: Array, weight: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the input, which has this shape, or None."""
    if not _suits(shape, grad.shape, window, grad, weight):
        return None
    plan = _input_plan(tuple(shape), weight.shape, grad.shape, window, groups)
    grad, weight = np.ascontiguousarray(grad), np.ascontiguousarray(weight)
    return _made(plan, shape, lambda made: (grad, weight, made))


def weight_gradient(grad: Array, x: Array, shape: Sizes, window: Any, groups: int) -> Array | None:
    """The gradient of the weight, which has this shape, or None."""
    if not _suits(x.shape, grad.shape, window, grad, x):
        return None
    plan = _weight_plan(x.shape, tuple(shape), grad.shape, window, groups)
    grad, x = np.ascontiguousarray(grad), np.ascontiguousarray(x)
    return _made(plan, shape, lambda made: (x, grad, made))
