"""Ops in terms of other ops, for devices that have no kernel of their own for them.

A formula takes the op's arguments in their order, arrays as tensors, and is computed by the kernels that the device
has: it names no device. It runs below autograd and autocast, where a kernel would. The modules of this package are
loaded when a device first lacks a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._backends.base import BY_ARRAY
from ..._dispatch.state import THREAD
from ..._tensor import Tensor, wrap_known

Kernel = Callable[..., Any]
FORMULAS: dict[str, Kernel] = {}


def formula(*keys: str) -> Callable[[Kernel], Kernel]:
    """The function is the formula of these ops."""

    def register(function: Kernel) -> Kernel:
        for key in keys:
            FORMULAS[key] = function
        return function

    return register


def as_kernel(function: Kernel) -> Kernel:
    """A function of tensors as one of arrays."""

    def run(*arguments: Any) -> Any:
        state = THREAD.state
        before, state.autocast = state.autocast, False
        try:
            return _arrays(function(*[_tensors(one) for one in arguments]))
        finally:
            state.autocast = before

    return run


def find(key: str) -> Kernel | None:
    """The kernel that the formula of an op is; None if it has none."""
    from . import (  # noqa: F401
        bags,
        copies,
        distances,
        elements,
        grids,
        groups,
        images,
        margins,
        samples,
        search,
        sequences,
        windows,
    )

    function = FORMULAS.get(key) or copies.of_view(key)
    return None if function is None else as_kernel(function)


def _tensors(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_tensors(one) for one in value)
    return wrap_known(value) if type(value) in BY_ARRAY else value


def _arrays(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_arrays(one) for one in value)
    return value._a if isinstance(value, Tensor) else value
