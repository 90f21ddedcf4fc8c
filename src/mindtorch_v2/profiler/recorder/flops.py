"""FLOPs of one op call, by the formula in the op's declaration."""

from __future__ import annotations

from typing import Any

from ..._shape import broadcast_shapes, numel
from ..trace.trace import TensorInput


def flops_of(op: Any, arguments: tuple[Any, ...]) -> int:
    """Floating point operations, or -1 where the op has no formula."""
    formula = op.flops
    if formula is None:
        return -1
    shapes = [a.shape for a in arguments if isinstance(a, TensorInput)]
    if formula == "elementwise":
        return numel(broadcast_shapes(*shapes))
    return int(formula(shapes))
