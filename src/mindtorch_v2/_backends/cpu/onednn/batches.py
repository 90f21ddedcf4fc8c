"""Products of batches of float32 matrices by oneDNN, on its threads."""

from __future__ import annotations

import math

import numpy as np

from .layouts import DESTINATION, SOURCE, WEIGHTS
from .library import Library, library
from .memory import Array, strided
from .plan import Plan, Role, planned

# Multiplications below which NumPy is as fast.
FEW = 1 << 18
FLOAT32 = np.dtype(np.float32)
ROLES = [Role(SOURCE), Role(WEIGHTS), Role(DESTINATION, written=True)]
Sizes = tuple[int, ...]


@planned
def _plan(found: Library, a: tuple[Sizes, Sizes], b: tuple[Sizes, Sizes], made: tuple[Sizes, Sizes]) -> Plan:
    arrays = [strided(found, *one) for one in (a, b, made)]
    descriptor = found.describe("dnnl_matmul_primitive_desc_create", found.engine, arrays[0], arrays[1], None,
                                arrays[2], None)
    return Plan(found, descriptor, ROLES, arrays)


def _rows_or_columns_lie_together(a: Array) -> bool:
    return 4 in a.strides[-2:] and all(s % 4 == 0 and s > 0 for s in a.strides)


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """`a @ b` of batches of the same shape, into `out` if that is given."""
    if (a.size * b.shape[-1] >= FEW and a.dtype is b.dtype is FLOAT32 and a.ndim == b.ndim > 2 and library() is not None
            and a.shape[:-2] == b.shape[:-2] and (out is None or out.dtype is FLOAT32)
            and _rows_or_columns_lie_together(a) and _rows_or_columns_lie_together(b)):
        made = np.empty((*a.shape[:-1], b.shape[-1]), FLOAT32) if out is None else out
        plan = _plan((a.shape, a.strides), (b.shape, b.strides), (made.shape, made.strides)) if math.prod(
            made.shape) else None
        if plan is not None:
            plan.run(a, b, made)
            return made
    return np.matmul(a, b) if out is None else np.matmul(a, b, out=out)
