"""Functions of each element of large float32 arrays by oneDNN."""

from __future__ import annotations

import numpy as np

from .layouts import DESTINATION, DESTINATION_GRADIENT, FORWARD_TRAINING, SOURCE, SOURCE_GRADIENT
from .library import Library, library
from .memory import Array, plain
from .plan import Plan, Role, planned

GELU_BY_TANH, GELU = 43, 49
GELU_KINDS = {"none": GELU, "tanh": GELU_BY_TANH}
# Elements below which NumPy is as fast.
FEW = 1 << 13
FLOAT32 = np.dtype(np.float32)


@planned
def _plan(found: Library, kind: int, size: int, backward: bool) -> Plan:
    shape = (size,)
    flat = plain(found, shape)
    forward = found.describe("dnnl_eltwise_forward_primitive_desc_create", found.engine, FORWARD_TRAINING, kind, flat,
                             flat, 0.0, 0.0, None)
    if not backward:
        return Plan(found, forward, [Role(SOURCE), Role(DESTINATION, written=True)], [shape] * 2)
    descriptor = found.describe("dnnl_eltwise_backward_primitive_desc_create", found.engine, kind, flat, flat, flat,
                                0.0, 0.0, forward, None)
    roles = [Role(SOURCE), Role(DESTINATION_GRADIENT), Role(SOURCE_GRADIENT, written=True)]
    return Plan(found, descriptor, roles, [shape] * 3)


def _suits(*arrays: Array) -> bool:
    # The library is asked for last: a program of small arrays never opens it.
    return (arrays[0].size >= FEW and all(a.dtype is FLOAT32 and a.flags.c_contiguous for a in arrays)
            and library() is not None)


def gelu(a: Array, approximate: str) -> Array | None:
    """The Gaussian error linear unit, or None."""
    plan = _plan(GELU_KINDS[approximate], a.size, False) if _suits(a) else None
    if plan is None:
        return None
    made = np.empty_like(a)
    plan.run(a, made)
    return made


def gelu_backward(grad: Array, a: Array, approximate: str) -> Array | None:
    """Its gradient, or None."""
    plan = _plan(GELU_KINDS[approximate], a.size, True) if _suits(grad, a) else None
    if plan is None:
        return None
    made = np.empty_like(a)
    plan.run(a, grad, made)
    return made
