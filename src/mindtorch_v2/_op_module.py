"""Modules such as `torch.fft` whose functions are ops with a common prefix."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

from ._dispatch.dispatcher import write_results
from ._dispatch.namespace import LOOKUPS, aten, late_names
from ._dispatch.registry import OVERLOADS
from ._numpy_names import NAMES, TENSOR_NAMES, torch_names

PACKAGE = __name__.partition(".")[0]
NUMPY_NAMES = {**NAMES, **TENSOR_NAMES}

# Functions that take no `out=`.
WITHOUT_OUT = frozenset({"fft_fftshift", "fft_ifftshift", "linalg_diagonal", "linalg_matrix_exp", "linalg_vander"})


def op_function(module: str, name: str, op: str) -> Callable[..., Any]:
    """A function that calls an op, which is compiled when it is first called."""

    def function(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and op in WITHOUT_OUT:
            raise TypeError(f"{op}() got an unexpected keyword argument 'out'")
        called = getattr(aten, op)
        if kwargs and not NUMPY_NAMES.keys().isdisjoint(kwargs):
            kwargs = torch_names(kwargs, NUMPY_NAMES, signature(called).parameters)
        made = called(*args, **kwargs)
        return made if out is None else write_results(op, out, made, args if module == "special" else ())

    function.__name__ = function.__qualname__ = op
    function.__module__ = f"{sys.modules[PACKAGE].__name__}._C._{module}"  # as PyTorch's, where pickles find it
    function.__doc__ = f"`torch.{module}.{name}`: the op `aten::{op}`."
    for noted in LOOKUPS:
        noted(f"{module}.{name}", function)
    return function


def op_functions(module: str, prefix: str) -> dict[str, Callable[..., Any]]:
    """A function for every op with a prefix, under its name without it."""
    return {name[len(prefix):]: op_function(module, name[len(prefix):], name)
            for name in sorted({*OVERLOADS, *late_names()}) if name.startswith(prefix)}
