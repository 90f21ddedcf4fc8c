"""Numbers beside 16-bit floats in products and quotients: they keep their digits, as PyTorch's kernels read them.

A number becomes an operand of the tensor's dtype everywhere else. In float16 one million would be inf and 1e-8 zero,
and a product with them nothing; products and quotients are computed in float32 with the number itself and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

HALVES = frozenset(map(np.dtype, (np.float16, ml_dtypes.bfloat16)))
FLOAT32 = np.dtype(np.float32)


class WideNumber(np.ndarray):
    """A float32 without dimensions that does not widen the 16-bit floats beside it; ufuncs ask it what to do."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        half = next(one.dtype for one in inputs if type(one) is not WideNumber)
        made = np.asarray(getattr(ufunc, method)(*map(widened, inputs), **options))
        made = made.astype(half) if made.dtype == FLOAT32 else made
        if out is None:
            return made
        out[0][...] = made
        return out[0]


def widened(array: Any) -> np.ndarray:
    """An operand in float32, as a plain array."""
    return np.asarray(array).astype(FLOAT32, copy=False).view(np.ndarray)


def wide_number(value: Any) -> WideNumber:
    """A real number, or an array with one element, as an operand beside 16-bit floats."""
    return np.asarray(value).astype(FLOAT32).view(WideNumber)


def in_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a kernel of several steps takes all of them in float32 if its second operand is a wide number."""
    def computed(a: Any, b: Any, *rest: Any) -> Any:
        if type(b) is not WideNumber:
            return kernel(a, b, *rest)
        return np.asarray(kernel(widened(a), widened(b), *rest)).astype(a.dtype)

    return computed
