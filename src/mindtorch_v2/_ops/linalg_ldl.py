"""Factors of symmetric and Hermitian matrices that need not be positive, and solving with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import factorization, lapack
from .._backends.cpu.linalg import raise_first
from .._backends.meta import regular
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._tensor import Tensor, wrap_known
from .formulas import NOT_IMPLEMENTED
from .linalg import check_matrix, renamed
from .return_types import named

FACTOR, SOLVE = "torch.linalg.ldl_factor_ex", "torch.linalg.ldl_solve"
SINGULAR = "{2}: {0}D[{1},{1}] is zero: the matrix is singular (error code: {1})."


def _refused(name: str) -> Any:
    def refuse(grads: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


def _check(name: str, kernel: str, a: Any) -> None:
    check_matrix(name, wrap_known(a), square=True, low_precision=True)
    if a.dtype.itemsize < 4:
        raise unsupported(kernel, a.dtype)
    if not lapack.has("sytrf", a.dtype):
        raise NotImplementedError(f"{name}: the linear algebra library of this NumPy is not known, and np.linalg has "
                                  "no such factors; torch.linalg.lu_factor has")


def _factor(a: Any, hermitian: bool, check_errors: bool) -> Any:
    _check(FACTOR, "ldl_factor_kernel_cpu", a)
    made = factorization.ldl_factor(a, hermitian)
    if check_errors:
        raise_first(made[2], SINGULAR, FACTOR)
    return made


def _solve(factors: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    _check(SOLVE, "ldl_solve_cpu", factors)
    if b.ndim < 2:
        raise RuntimeError(f"{SOLVE}: Expected B to have at least 2 dimensions, but it has {b.ndim} dimensions instead")
    size, found = factors.shape[-1], b.shape[-2:]
    if factors.dtype != b.dtype:
        given, other = (pretty(wrap_known(one).dtype) for one in (b, factors))
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {given} and A of type "
                           f"{other} instead.")
    if found[0] != size:
        raise RuntimeError(f"Incompatible matrix sizes for {SOLVE}: each A matrix is {size} by {size} but each b "
                           f"matrix is {found[0]} by {found[1]}")
    if pivots.shape != factors.shape[:-1]:
        raise RuntimeError(f"{SOLVE}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
                           f"shape {list(pivots.shape)} instead")
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{SOLVE}: Expected pivots to be integers. Got {pretty(wrap_known(pivots).dtype)}")
    lead = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    return lapack.ldl_solve(factors, pivots, b, lead, hermitian)


declare("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
        "Tensor pivots, Tensor info)", cpu=_factor, meta=regular(_factor), where="n", differentiable=(0,),
        node=NOT_IMPLEMENTED,
        grad={"self": _refused("linalg_ldl_factor_ex")})
declare("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", cpu=_solve,
        where="n", node=NOT_IMPLEMENTED, grad={("LD", "B"): _refused("linalg_ldl_solve")})


@choose("linalg_ldl_factor_ex", where="n")
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """L and D, the exchanges, and what was wrong with each matrix."""
    return named("linalg_ldl_factor_ex", ("LD", "pivots", "info"))(
        aten.linalg_ldl_factor_ex__default(input, hermitian=hermitian, check_errors=check_errors))


def _ldl_factor(self: Tensor, hermitian: bool) -> Any:
    made = renamed("ldl_factor_ex", "ldl_factor", lambda: aten.linalg_ldl_factor_ex__default(
        self, hermitian=hermitian, check_errors=True))
    return named("linalg_ldl_factor", ("LD", "pivots"))(made[:2])


declare("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
        composite=_ldl_factor, where="n")
