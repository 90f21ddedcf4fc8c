"""Functions of ops whose inputs have a form, which is given back first: `gradcheck` changes single elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dispatch.namespace import aten
from ...._tensor import Tensor


def _adjoint(matrix: Tensor) -> Tensor:
    turned = aten.transpose(matrix, -2, -1)
    return aten.conj(turned) if matrix.is_complex() else turned


def gradcheck_wrapper_hermitian_input(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The op of a matrix that is made Hermitian."""
    return op(input + _adjoint(input), *args, **kwargs)


def gradcheck_wrapper_triangular_input(op: Callable[..., Any], *args: Any, upper: bool = False, idx: int = 0,
                                       **kwargs: Any) -> Any:
    """The op of a matrix of which one triangle is kept; `idx` says which argument it is."""
    kept = aten.triu(args[idx]) if upper else aten.tril(args[idx])
    return op(*args[:idx], kept, *args[idx + 1:], upper, **kwargs)


def gradcheck_wrapper_triangular_input_real_positive_diagonal(op: Callable[..., Any], *args: Any, upper: bool = False,
                                                              idx: int = 0, **kwargs: Any) -> Any:
    """The op of a triangular matrix whose diagonal is real and positive."""
    given = args[idx]
    diagonal = aten.abs(aten.diagonal(given, 0, -2, -1))
    strict = aten.triu(given, 1) if upper else aten.tril(given, -1)
    changed = strict + aten.diag_embed(diagonal, 0, -2, -1)
    return gradcheck_wrapper_triangular_input(op, *args[:idx], changed, *args[idx + 1:], upper=upper, idx=idx, **kwargs)
