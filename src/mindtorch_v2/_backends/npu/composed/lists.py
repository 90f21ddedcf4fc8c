"""Ops on whole lists of tensors, from which optimizers are made: one call for many parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..arrays import FLOAT32, NpuArray, like, new
from ..call import CALLS

Arrays = list[NpuArray]
DTYPES = (FLOAT32, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
AT_ONCE = 48  # longer lists are cut: the operators have undocumented limits

# By key, without the `_` of the in-place form: the operator, and its arguments between operands and results.
CALLED: dict[str, tuple[str, Callable[..., tuple[Any, ...]]]] = {
    "add.Scalar": ("ForeachAddScalarV2", lambda number: (number,)),
    "sub.Scalar": ("ForeachAddScalarV2", lambda number: (-number,)),
    "mul.Scalar": ("ForeachMulScalarV2", lambda number: (number,)),
    # There is no quotient by a number: it is a product, whose last digit may differ.
    "div.Scalar": ("ForeachMulScalarV2", lambda number: (1 / number,)),
    "neg": ("ForeachMulScalarV2", lambda: (-1,)),
    "add.List": ("ForeachAddListV2", lambda alpha: (alpha,)),
    "sub.List": ("ForeachSubListV2", lambda alpha: (alpha,)),
    "mul.List": ("ForeachMulList", lambda: ()),
    "div.List": ("ForeachDivList", lambda: ()),
    "sqrt": ("ForeachSqrt", lambda: ()),
    "lerp.Scalar": ("ForeachLerpScalar", lambda weight: (weight,)),
    "addcmul.Scalar": ("ForeachAddcmulScalarV2", lambda value: (value,)),
    "addcdiv.Scalar": ("ForeachAddcdivScalarV2", lambda value: (value,)),
}
CALLED |= {key.replace(".Scalar", ".ScalarList"): row for key, row in CALLED.items() if key.endswith(".Scalar")}


def foreach(key: str) -> Callable[..., Any] | None:
    """The kernel of an op on lists, None if there is none."""
    if key == "zero_":
        return _zero
    if key == "norm.Scalar":
        return _norm
    name, dot, overload = key.partition(".")
    inplace = name.endswith("_")
    row = CALLED.get(name.removesuffix("_") + dot + overload)
    return None if row is None else _kernel(*row, inplace)


def _kernel(operator: str, between: Callable[..., tuple[Any, ...]], inplace: bool) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        lists = [value for value in given if isinstance(value, list)]
        if operator == "ForeachMulScalarV2" and 0 in given[1:2]:
            return NotImplemented  # there may be infinities to make of zeros
        numbers = between(*[value for value in given if not isinstance(value, list)])
        if lists[0][0].dtype not in DTYPES or any(isinstance(number, complex) for number in numbers):
            return NotImplemented
        out = lists[0] if inplace else [like(one) for one in lists[0]]
        call = getattr(CALLS, operator)
        for start in range(0, len(out), AT_ONCE):
            call(*[each[start:start + AT_ONCE] for each in lists], *numbers, out[start:start + AT_ONCE])
        return out

    return run


def _zero(tensors: Arrays) -> Any:
    if tensors[0].dtype not in DTYPES:
        return NotImplemented
    for start in range(0, len(tensors), AT_ONCE):
        CALLS.ForeachZeroInplace(tensors[start:start + AT_ONCE])
    return tensors


def _norm(tensors: Arrays, order: Any, dtype: Any) -> Any:
    if tensors[0].dtype not in DTYPES or dtype is not None or order not in (1, 2) or not all(t.size for t in tensors):
        return NotImplemented
    out = [new(one, ()) for one in tensors]
    for start in range(0, len(out), AT_ONCE):
        CALLS.ForeachNorm(tensors[start:start + AT_ONCE], order, out[start:start + AT_ONCE])
    return out
