"""The dtypes that activation functions take."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES
from .pointwise import FLOAT32, unsupported

Array = Any
Function = Callable[..., Any]


def floats_only(name: str) -> Callable[[Function], Function]:
    """Decorator: refuses dtypes other than real floats; 16-bit floats are computed in float32."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def kernel(a: Array, *rest: Any) -> Any:
            dtype = a.dtype
            if dtype is FLOAT32:
                return function(a, *rest)
            if dtype not in FLOAT_DTYPES or dtype.kind == "c":
                raise unsupported(name, dtype)
            if dtype.itemsize != 2:
                return function(a, *rest)
            rest = tuple(b.astype(FLOAT32) if isinstance(b, np.ndarray) and b.dtype == dtype else b for b in rest)
            result = function(a.astype(FLOAT32), *rest)
            if isinstance(result, tuple):
                return tuple(np.asarray(one).astype(dtype) for one in result)
            return np.asarray(result).astype(dtype)

        return kernel

    return decorate
