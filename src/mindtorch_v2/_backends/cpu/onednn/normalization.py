"""Layer normalization of large float32 matrices by oneDNN.

Its batch normalization is fast only on layouts of its own; for images as they lie here, NumPy is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..memory import empty
from .layouts import (
    BACKWARD,
    DESTINATION,
    DESTINATION_GRADIENT,
    FORWARD_TRAINING,
    MEAN,
    SCALE,
    SCALE_GRADIENT,
    SHIFT,
    SHIFT_GRADIENT,
    SOURCE,
    SOURCE_GRADIENT,
    VARIANCE,
)
from .library import Library, library
from .memory import Array, plain
from .plan import Plan, Role, planned

WITH_SCALE_AND_SHIFT = 2 | 4
# Elements below which NumPy is as fast.
FEW = 1 << 13
FLOAT32 = np.dtype(np.float32)
Sizes = tuple[int, ...]

FORWARD_ROLES = [Role(SOURCE), Role(SCALE), Role(SHIFT), Role(DESTINATION, written=True), Role(MEAN, written=True),
                 Role(VARIANCE, written=True)]
BACKWARD_ROLES = [Role(SOURCE), Role(DESTINATION_GRADIENT), Role(MEAN), Role(VARIANCE), Role(SCALE), Role(SHIFT),
                  Role(SOURCE_GRADIENT, written=True), Role(SCALE_GRADIENT, written=True),
                  Role(SHIFT_GRADIENT, written=True)]


@planned
def _plan(found: Library, shape: Sizes, eps: float, backward: bool) -> Plan:
    rows, width = shape
    data, statistics = plain(found, shape), plain(found, (rows,))
    forward = found.describe("dnnl_layer_normalization_forward_primitive_desc_create", found.engine, FORWARD_TRAINING,
                             data, data, statistics, eps, WITH_SCALE_AND_SHIFT, None)
    if not backward:
        return Plan(found, forward, FORWARD_ROLES, [shape, (width,), (width,), shape, (rows,), (rows,)])
    descriptor = found.describe("dnnl_layer_normalization_backward_primitive_desc_create", found.engine, BACKWARD, data,
                                data, data, statistics, eps, WITH_SCALE_AND_SHIFT, forward, None)
    return Plan(found, descriptor, BACKWARD_ROLES,
                [shape, shape, (rows,), (rows,), (width,), (width,), shape, (width,), (width,)])


def _suits(*arrays: Array | None) -> bool:
    # The library is asked for last: a program of small arrays never opens it.
    return (all(a is not None and a.dtype is FLOAT32 and a.flags.c_contiguous for a in arrays)
            and library() is not None)


def layer_norm(rows: Array, weight: Any, bias: Any, eps: float) -> tuple[Array, Array, Array] | None:
    """Normalized rows, scaled and shifted, with their means and variances, or None."""
    if rows.size < FEW or not _suits(rows, weight, bias):
        return None
    plan = _plan(rows.shape, eps, False)
    if plan is None:
        return None
    made, mean, variance = (empty(shape, FLOAT32) for shape in (rows.shape, (len(rows),), (len(rows),)))
    plan.run(rows, weight, bias, made, mean, variance)
    return made, mean, variance


def layer_norm_backward(grad: Array, rows: Array, mean: Array, deviation: Array,
                        weight: Any) -> tuple[Array, Array, Array] | None:
    """Gradients of rows, weight and bias, or None."""
    if rows.size < FEW or not _suits(grad, rows, mean, deviation, weight):
        return None
    # Planned without epsilon: the reciprocal deviation has it already.
    plan = _plan(rows.shape, 0.0, True)
    if plan is None:
        return None
    made, first, second = (empty(shape, FLOAT32) for shape in (rows.shape, weight.shape, weight.shape))
    # The shift has to be there but does not enter the gradients: the weight stands in for it.
    plan.run(rows, grad, mean, 1 / (deviation * deviation), weight, weight, made, first, second)
    return made, first, second
