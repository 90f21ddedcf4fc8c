"""FLOPs of one op call, by the formula in the op's declaration."""

from __future__ import annotations

from typing import Any

from mtprof.trace import TensorInput

from ..._shape import numel


def flops_of(op: Any, arguments: tuple[Any, ...]) -> int:
    """Floating point operations, or -1 if the op has no formula."""
    formula = op.flops
    if formula is None:
        return -1
    shapes = [a.shape for a in arguments if isinstance(a, TensorInput)]
    if formula == "elementwise":
        # PyTorch counts the first operand's elements, even if the other one is larger.
        return numel(shapes[0]) if shapes else -1
    # Some formulas also need numbers such as a stride: they take all arguments as their second parameter.
    return int(formula(shapes, arguments) if formula.__code__.co_argcount == 2 else formula(shapes))
