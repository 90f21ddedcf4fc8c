"""The promise that an op's results are new memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor


def shares_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors share memory."""
    if one is other or (one._st is not None and one._st is other._st):
        return True
    a, b = one._a, other._a
    return type(a) is np.ndarray and type(b) is np.ndarray and np.may_share_memory(a, b)


def check_aliasing(name: str, kernel: Callable[..., Any], given: list[Tensor], made: Any) -> None:
    """Refuse results that share memory with an argument or with each other."""
    listed = made if isinstance(made, (tuple, list)) else (made,)
    seen = list(given)
    for result in listed:
        for one in result if isinstance(result, list) else (result,):
            if not isinstance(one, Tensor):
                continue
            if any(shares_memory(one, other) for other in seen):
                raise RuntimeError(
                    f"{name} (with implementation in {inspect.getmodule(kernel)}): The output of this custom operator "
                    "(1) must not also be an input to this custom operator and (2) may not alias any inputs to this "
                    "custom operator or other returns. Return a clone of that tensor, or do not return it.")
            seen.append(one)
