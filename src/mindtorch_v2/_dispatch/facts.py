"""Everything that an op's generated functions depend on, and nothing else: it is the key of the code on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .registry import Op


class Facts(NamedTuple):
    """One form of an op, for the code that writes its functions. `Op` explains the fields."""

    schema_text: str
    key: str
    namespace: str
    inplace: bool
    composite: bool  # whether it is made of other ops
    cpu_full: bool  # whether there is such a kernel
    cpu_inplace: bool
    ufunc: bool  # whether the kernel is a ufunc
    formulas: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  # arguments, and the parameters of their formula
    promote: str | None
    scalar_overload: bool
    view: bool
    variadic: str | None
    where: str
    differentiable: tuple[int, ...] | None


def facts_of(op: Op, inplace: bool) -> Facts:
    """The facts of the plain or in-place form of an op."""
    formulas = tuple([((names,) if isinstance(names, str) else tuple(names), formula_parameters(formula))
                      for names, formula in op.formulas(inplace).items()])
    return Facts(op.schema_text, op.key, op.namespace, inplace, op.composite is not None, op.cpu_full is not None,
                 op.cpu_inplace is not None, isinstance(ufunc_of(op.cpu), np.ufunc), formulas, op.promote,
                 op.scalar_overload is not None, op.view, op.variadic, op.where, op.differentiable)


def formula_parameters(formula: Callable[..., Any]) -> tuple[str, ...]:
    """A formula's parameter names, which say what it needs."""
    code = formula.__code__
    return code.co_varnames[: code.co_argcount]


def ufunc_of(kernel: Any) -> Any:
    """The kernel's ufunc, or the one that it calls after its own checks, with the given `out`."""
    return getattr(kernel, "ufunc", kernel)
