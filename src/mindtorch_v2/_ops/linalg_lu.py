"""LU decomposition, triangular systems and solving with factors that are known already."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import on_device
from .._backends.cpu import factorization as kernels
from .._backends.cpu.columns import by_columns
from .._backends.meta import regular
from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dtype import FLOAT, FROM_NUMPY, int32
from .._tensor import Tensor, wrap, wrap_known
from .._warn import warn_once
from .formulas import conj
from .linalg import adjoint, check_matrix, renamed
from .return_types import named


def _halves(x: Any, axis: int, count: int) -> tuple[Any, Any]:
    return aten.narrow(x, axis, 0, count), aten.narrow(x, axis, count, x._a.shape[axis] - count)


def _lu_backward(grad_l: Any, grad_u: Any, lower: Any, upper: Any) -> Any:
    """The gradient of the matrix with its rows exchanged, L U."""
    rows, columns = lower._a.shape[-2], upper._a.shape[-1]
    count = min(rows, columns)
    square_l, below = _halves(lower, -2, count) if rows > columns else (lower, None)
    square_u, beside = _halves(upper, -1, count) if columns > rows else (upper, None)
    part_l = aten.narrow(grad_l, -2, 0, count)
    part_u = aten.narrow(grad_u, -1, 0, count)
    strict = aten.matmul(adjoint(square_l), part_l)
    above = aten.matmul(part_u, adjoint(square_u))
    if beside is not None:
        rest_u = aten.narrow(grad_u, -1, count, columns - count)
        strict = strict - aten.matmul(rest_u, adjoint(beside))
    if below is not None:
        rest_l = aten.narrow(grad_l, -2, count, rows - count)
        above = above - aten.matmul(adjoint(below), rest_l)
    inner = aten.tril(strict, -1) + aten.triu(above)
    made = _solve(adjoint(square_u), inner, upper=False, left=False)
    made = _solve(adjoint(square_l), made, upper=True, unitriangular=True)
    if beside is not None:
        right = _solve(adjoint(square_l), rest_u, upper=True, unitriangular=True)
        return aten.cat([made, right], -1)
    if below is not None:
        lower_part = _solve(adjoint(square_u), rest_l, upper=False, left=False)
        return aten.cat([made, lower_part], -2)
    return made


def _solve(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    return aten.linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=unitriangular)


def _exchanged(pivots: Any, x: Any) -> Any:
    """P x."""
    matrix = _permutation_matrix(pivots._a, x._a.shape[-2], x._a.dtype)
    return aten.matmul(wrap(matrix), x)


_permutation_matrix = on_device(kernels.permutation_matrix)


def _factor_backward(grads: Any, pivot: bool, result0: Any, result1: Any) -> Any:
    grad = grads[0]
    count = min(grad._a.shape[-2:])
    one = aten.eye(grad._a.shape[-2], count, dtype=grad.dtype, device=grad.device)
    lower = aten.tril(aten.narrow(result0, -1, 0, count), -1) + one
    upper = aten.triu(aten.narrow(result0, -2, 0, count))
    made = _lu_backward(aten.tril(aten.narrow(grad, -1, 0, count), -1), aten.triu(aten.narrow(grad, -2, 0, count)),
                        lower, upper)
    return _exchanged(result1, made) if pivot else made


declare(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
    "Tensor info)", cpu=kernels.lu_factor, meta=regular(kernels.lu_factor), where="n",
    differentiable=(0,), node="LinalgLuFactorExBackward0",
    grad={"A": _factor_backward},
)
choose("linalg_lu_factor_ex", where="n")(
    lambda A, *, pivot=True, check_errors=False: named("linalg_lu_factor_ex", ("LU", "pivots", "info"))(
        _checked_factor("torch.linalg.lu_factor_ex", A, pivot, check_errors)))


def _checked_factor(name: str, a: Tensor, pivot: bool, check_errors: bool) -> Any:
    check_matrix(name, a)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return aten.linalg_lu_factor_ex__default(a, pivot=pivot, check_errors=check_errors)


def _lu_factor(a: Tensor, pivot: bool) -> Any:
    made = renamed("lu_factor_ex", "lu_factor", lambda: _checked_factor("torch.linalg.lu_factor", a, pivot, True))
    return named("linalg_lu_factor", ("LU", "pivots"))(made[:2])


declare("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", composite=_lu_factor,
        where="n")


def _lu_kernel(a: Any, pivot: bool) -> Any:
    lu, pivots, _ = kernels.lu_factor(a, pivot, False)
    lower, upper = kernels.unpack(lu)
    if not pivot:
        return np.empty(0, a.dtype), lower, upper
    return kernels.permutation_matrix(pivots, a.shape[-2], a.dtype), lower, upper


def _whole_backward(grads: Any, pivot: bool, result0: Any, result1: Any, result2: Any) -> Any:
    made = _lu_backward(grads[1], grads[2], result1, result2)
    return aten.matmul(result0, made) if pivot else made


def _lu(a: Any, pivot: bool) -> Any:
    given = wrap_known(a)
    if a.ndim < 2:
        raise RuntimeError(f"linalg.lu: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead")
    if given.dtype.category < FLOAT:
        raise NotImplementedError(f"\"lu_cpu\" not implemented for '{pretty(given.dtype)}'")
    check_matrix("linalg.lu", given)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return _lu_kernel(a, pivot)


declare("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", cpu=_lu, where="n",
        differentiable=(1, 2), grad={"A": _whole_backward})


@choose("linalg_lu", where="n")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A permutation, a unit lower and an upper triangular factor."""
    return named("linalg_lu", ("P", "L", "U"))(aten.linalg_lu__default(A, pivot=pivot))


# -- unpacking -------------------------------------------------------------------------------------------------------


def _unpack_kernel(lu: Any, pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    nothing = np.empty(0, lu.dtype)
    lower, upper = kernels.unpack(lu) if unpack_data else (nothing, nothing)
    return (kernels.permutation_matrix(pivots, lu.shape[-2], lu.dtype) if unpack_pivots else nothing), lower, upper


def _unpack_backward(grads: Any, LU_data_shape: Any) -> Any:
    rows, columns = LU_data_shape[-2:]
    count = min(rows, columns)
    lower, upper = aten.tril(grads[1], -1), aten.triu(grads[2])
    if columns > count:
        lower = aten.constant_pad_nd(lower, (0, columns - count))
    if rows > count:
        upper = aten.constant_pad_nd(upper, (0, 0, 0, rows - count))
    return lower + upper


declare(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
    "Tensor L, Tensor U)", cpu=_unpack_kernel, where="n", differentiable=(1, 2), grad={"LU_data": _unpack_backward},
)


@choose("lu_unpack", where="f")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *,
              out: Any = None) -> Any:
    """P, L and U of a packed decomposition."""
    if LU_data.ndim < 2:
        raise RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(LU_data._a.shape)} instead")
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           "Note: this function is intended to be used with the output produced by "
                           "torch.linalg.lu_factor")
    if unpack_pivots and not LU_pivots.is_meta and LU_pivots._a.size:
        lowest, highest = (value.item() for value in aten.aminmax(LU_pivots))
        if lowest < 1 or highest > LU_data._a.shape[-2]:
            raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive, but they are "
                               f"{lowest} to {highest}. Did you properly pass the result of lu_factor?")
    made = named("lu_unpack", ("P", "L", "U"))(
        aten.lu_unpack__default(LU_data, LU_pivots, unpack_data, unpack_pivots))
    return made if out is None else write_results("lu_unpack", out, made)


@choose("lu", where="fm")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The packed LU decomposition with its pivots, and the diagnosis of each matrix if asked for."""
    warn_once("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be "
              "removed in a future PyTorch release.")
    made = named("_lu_with_info", ("LU", "pivots", "info"))(aten._lu_with_info(A, pivot, False))
    results = made if get_infos else tuple(made[:2])
    if out is None:
        return results
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got "
                        f"{len(out) if hasattr(out, '__len__') else type(out).__name__}")
    for target, result in zip(out, results, strict=True):
        target.resize_as_(result).copy_(result)
    return out


declare("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, "
        "Tensor info)", where="f", composite=lambda self, pivot, check_errors: aten.linalg_lu_factor_ex(
            self, pivot=pivot, check_errors=check_errors))


# -- solving ---------------------------------------------------------------------------------------------------------


def _triangular_backward(grad: Tensor, self: Tensor, result: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    right = _solve(adjoint(self), grad, upper=not upper, left=left, unitriangular=unitriangular)
    made = -aten.matmul(right, adjoint(result)) if left else -aten.matmul(adjoint(result), right)
    skip = 1 if unitriangular else 0
    return (aten.triu(made, skip) if upper else aten.tril(made, -skip)), right


def _solve_triangular(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    _check_system("linalg.solve_triangular", wrap_known(a), wrap_known(b), left)
    return kernels.solve_triangular(a, b, upper, left, unitriangular)


def _check_system(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type "
                           f"{pretty(a.dtype)} and B of type {pretty(b.dtype)} instead")
    check_matrix(name, a, square=True)
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    size, wanted = b._a.shape[-2 if left else -1], a._a.shape[-1]
    if size != wanted:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} "
                           f"({wanted}x{wanted} and {b._a.shape[-2]}x{b._a.shape[-1]})")


declare("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
        "Tensor", cpu=_solve_triangular, where="n", grad={("self", "B"): _triangular_backward})


def _lu_solve(lu: Any, pivots: Any, b: Any, left: bool, adjoint_: bool) -> Any:
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    _check_system("linalg.lu_solve", wrap_known(lu), wrap_known(b), left)
    if pivots.shape[-1] != lu.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    return kernels.lu_solve(lu, pivots, b, left, adjoint_)


def _lu_solve_backward(grad: Tensor, LU: Any, pivots: Any, left: bool, adjoint: bool, result: Any) -> Any:
    of_right = aten.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    turned = conj(aten.transpose(result, -2, -1))
    of_matrix = -(aten.matmul(of_right, turned) if left else aten.matmul(turned, of_right))
    if adjoint:
        of_matrix = conj(aten.transpose(of_matrix, -2, -1))
    size = LU._a.shape[-1]
    lower = aten.tril(LU, -1) + aten.eye(size, dtype=LU.dtype, device=LU.device)
    matrix = wrap(_permutation_matrix(pivots._a, size, LU._a.dtype))
    back = aten.matmul(aten.transpose(matrix, -2, -1), of_matrix)
    of_lower = aten.matmul(back, conj(aten.transpose(aten.triu(LU), -2, -1)))
    of_upper = aten.matmul(conj(aten.transpose(lower, -2, -1)), back)
    return aten.tril(of_lower, -1) + aten.triu(of_upper), of_right


declare("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        cpu=_lu_solve, where="n", grad={("LU", "B"): _lu_solve_backward})
declare("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
        composite=lambda self, lu, pivots: _old_lu_solve(self, lu, pivots))


def _old_lu_solve(b: Tensor, lu: Tensor, pivots: Tensor) -> Any:
    warn_once("torch.lu_solve is deprecated in favor of torch.linalg.lu_solve and will be removed in a future PyTorch "
              "release.")
    return aten.linalg_lu_solve(lu, pivots, b)


def _solve_ex(a: Tensor, b: Tensor, left: bool, check_errors: bool) -> Any:
    check_matrix("linalg.solve", a, square=True)
    infos = aten.linalg_lu_factor_ex(aten.detach(a))[2]
    if not check_errors and bool(aten.any(infos)):
        made = aten.full_like(b, float("nan"))
    else:
        made = aten.linalg_solve(a, b, left=left)
    return named("linalg_solve_ex", ("result", "info"))((made, infos))


declare("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
        "Tensor info)", composite=_solve_ex, where="n")


def _refuse_two_dtypes(b: Any, a: Any) -> None:
    if a.dtype != b.dtype:
        found, other = (pretty(FROM_NUMPY[one.dtype]) for one in (b, a))
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {found} and A of type "
                           f"{other} instead.")


def _triangular_solve(b: Any, a: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    _refuse_two_dtypes(b, a)
    matrix = np.swapaxes(a, -2, -1) if transpose else a
    solution = kernels.solve_triangular(matrix, b, upper != transpose, True, unitriangular)
    return solution, by_columns(np.broadcast_to(a, (*solution.shape[:-2], *a.shape[-2:])).copy())


def _triangular_solve_backward(grads: Any, A: Any, result0: Any, upper: bool, transpose: bool,
                               unitriangular: bool) -> Any:
    matrix = aten.transpose(A, -2, -1) if transpose else A
    of_matrix, of_right = _triangular_backward(grads[0], matrix, result0, upper != transpose, True, unitriangular)
    return of_right, grads[1] + (aten.transpose(of_matrix, -2, -1) if transpose else of_matrix)


declare("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
        "(Tensor solution, Tensor cloned_coefficient)", cpu=_triangular_solve, where="n",
        grad={("self", "A"): _triangular_solve_backward})


@choose("triangular_solve")
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False, *, out: Any = None) -> Any:
    """The solution of a triangular system, and a copy of its coefficients."""
    for name, one in (("b", input), ("A", A)):
        if one.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has "
                               f"{one.ndim} dimensions instead")
    if A._a.shape[-1] != A._a.shape[-2]:
        raise RuntimeError("triangular_solve: A must be batches of square matrices, but they are "
                           f"{A._a.shape[-2]} by {A._a.shape[-1]} matrices")
    if A._a.shape[-1] != input._a.shape[-2]:
        raise RuntimeError("Incompatible matrix sizes for triangular_solve: each A matrix is "
                           f"{A._a.shape[-2]} by {A._a.shape[-1]} but each b matrix is {input._a.shape[-2]} by "
                           f"{input._a.shape[-1]}")
    warn_once("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a "
              "future PyTorch release.")
    made = named("triangular_solve", ("solution", "cloned_coefficient"))(
        aten.triangular_solve__default(input, A, upper, transpose, unitriangular))
    return made if out is None else write_results("triangular_solve", out, made)


# -- Cholesky --------------------------------------------------------------------------------------------------------


def _cholesky_solve_backward(grad: Tensor, input2: Any, upper: bool, result: Any) -> Any:
    right = aten.cholesky_solve(grad, input2, upper)
    common = aten.matmul(right, adjoint(result))
    common = common + adjoint(common)
    return right, -(aten.matmul(input2, common) if upper else aten.matmul(common, input2))


declare("_cholesky_solve_helper(Tensor self, Tensor input2, bool upper) -> Tensor", cpu=kernels.cholesky_solve,
        where="n", node="CholeskySolveBackward0", grad={("self", "input2"): _cholesky_solve_backward})


def _cholesky_solve(self: Tensor, factor: Tensor, upper: bool) -> Tensor:
    if self.ndim < 2 or factor.ndim < 2:
        which, name = (self, "b") if self.ndim < 2 else (factor, "u")
        raise RuntimeError(f"{name} should have at least 2 dimensions, but has {which.ndim} dimensions instead")
    rows, columns = factor._a.shape[-2:]
    if rows != columns or rows != self._a.shape[-2]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {rows} by {columns} but "
                           f"each b matrix is {self._a.shape[-2]} by {self._a.shape[-1]}")
    _refuse_two_dtypes(self._a, factor._a)
    return aten._cholesky_solve_helper(self, factor, upper)


declare("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", composite=_cholesky_solve)


def _cholesky_inverse_backward(grad: Tensor, self: Tensor, upper: bool, result: Any) -> Any:
    inner = aten.matmul(result, aten.matmul(grad + adjoint(grad), result))
    return -(aten.matmul(self, inner) if upper else aten.matmul(inner, self))


def _cholesky_inverse_kernel(a: Any, upper: bool) -> Any:
    if a.ndim < 2:
        raise RuntimeError("cholesky_inverse: The input tensor A must have at least 2 dimensions.")
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError("cholesky_inverse: A must be batches of square matrices, but they are "
                           f"{a.shape[-2]} by {a.shape[-1]} matrices")
    return kernels.cholesky_inverse(a, upper)


declare("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cpu=_cholesky_inverse_kernel,
        meta=regular(_cholesky_inverse_kernel),
        grad={"self": _cholesky_inverse_backward})
