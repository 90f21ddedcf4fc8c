"""Linear algebra: inverses, determinants, solving, and the factorisations by Cholesky and QR.

PyTorch's determinant and solver also return the LU factors that they went through; np.linalg keeps those to itself, so
the ops here return the results alone.
"""

from __future__ import annotations

from typing import Any

from .._backends.cpu import linalg as kernels
from .._backends.cpu.providers import around
from .._backends.meta import regular
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import FLOAT
from .._tensor import Tensor, wrap_known
from .._warn import warn_once
from .formulas import conj
from .return_types import named


def adjoint(x: Any) -> Any:
    """The conjugate transpose of each matrix."""
    return conj(aten.transpose(x, -2, -1))


def refuse_phase(name: str, vectors: str, diagonal: Any) -> None:
    """Refuse a gradient that depends on the phases of complex vectors, which are arbitrary."""
    if diagonal.dtype.is_complex and not diagonal.is_meta:
        turns = aten.imag(diagonal)
        if not aten.allclose(turns, aten.zeros_like(turns), 1e-2, 1e-2):
            raise RuntimeError(f"{name}: The {vectors} in the complex case are specified up to multiplication by "
                               "e^{i phi}. The specified loss function depends on this quantity, so it is "
                               "ill-defined.")


def unused(*grads: Any) -> bool:
    """Whether the vectors of a decomposition were not used: equal values, which share a gap of 0, do no harm then."""
    return not any(grad.requires_grad or grad.is_meta or bool(aten.any(grad)) for grad in grads)


# The kernels that refuse 16-bit floats, by the name that the errors of a function begin with.
LAPACK = {"linalg.svd": "linalg_svd_cpu", "linalg.eigh": "linalg_eigh_cpu", "linalg.eigvalsh": "linalg_eigh_cpu",
          "linalg.eig": "linalg_eig_out_cpu", "linalg.qr": "geqrf_cpu", "geqrf": "geqrf_cpu",
          "cholesky": "cholesky_cpu", "linalg.cholesky": "cholesky_cpu", "linalg.cond": "linalg_svd_cpu",
          **dict.fromkeys(("linalg.lu", "linalg.det", "linalg.solve", "linalg.lu_factor",
                           "linalg.lu_factor_ex"), "lu_cpu"), "linalg.lu_solve": "linalg.lu_solve_cpu",
          "linalg.solve_triangular": "triangular_solve_cpu"}
# Functions that leave integers to their kernel to refuse.
SILENT = frozenset({"linalg.eigh", "linalg.eigvalsh", "linalg.lu_factor", "linalg.lu_factor_ex", "geqrf", "cholesky",
                    "linalg.solve_triangular"})


_TORCH_LU = "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {shape} instead"
# The error for a vector, in functions with a text of their own.
FEW_DIMENSIONS = {
    "torch.linalg.lu_factor": _TORCH_LU, "torch.linalg.lu_factor_ex": _TORCH_LU,
    "torch.linalg.lstsq": "{name}: input must have at least 2 dimensions.",
    "torch.geqrf": "{name}: input must have at least 2 dimensions.",
    "linalg.matrix_rank": "torch.{name}: The input tensor input must have at least 2 dimensions.",
    "linalg.pinv": "{name}({shape}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
                   "types",
}


def check_matrix(name: str, a: Tensor, *, square: bool = False, low_precision: bool = False) -> None:
    """PyTorch's conditions on the argument of a decomposition."""
    if not isinstance(a, Tensor):
        raise TypeError(f"{name.removeprefix('torch.').replace('.', '_')}(): argument 'A' (position 1) must be Tensor, "
                        f"not {type(a).__name__}")
    if a.ndim < 2:
        said = FEW_DIMENSIONS.get(name, "{name}: The input tensor A must have at least 2 dimensions.")
        raise RuntimeError(said.format(name=name, shape=list(a._a.shape)))
    rows, columns = a._a.shape[-2:]
    if square and rows != columns:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices")
    short = name.removeprefix("torch.")
    kernel, exact = LAPACK.get(short), a.dtype.category < FLOAT
    if kernel is not None and (short in SILENT if exact else a._a.dtype.itemsize < 4):
        raise unsupported(kernel, a._a.dtype)
    if name == "linalg.pinv" and (exact or a._a.dtype.itemsize < 4):
        raise RuntimeError(f"{name}({pretty(a.dtype)}): expected a tensor with 2 or more dimensions of float, double, "
                           "cfloat or cdouble types")
    if exact:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {pretty(a.dtype)}")
    if not low_precision and a._a.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {pretty(a.dtype)}")


# -- inverse ---------------------------------------------------------------------------------------------------------

declare(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", cpu=kernels.inv_ex,
    where="n", differentiable=(0,), meta=regular(kernels.inv_ex),
    grad={"A": lambda grad, result0: -aten.matmul(adjoint(result0), aten.matmul(grad, adjoint(result0)))},
)


def renamed(inner: str, name: str, call: Any) -> Any:
    """A call whose errors begin with the name of the function that the program called."""
    try:
        return call()
    except kernels.LinAlgError as error:
        raise kernels.LinAlgError(str(error).replace(inner, name, 1)) from None


def _inv(a: Tensor) -> Tensor:
    check_matrix("linalg.inv", a, square=True)
    return renamed("linalg.inv_ex", "linalg.inv", lambda: aten.linalg_inv_ex__default(a, check_errors=True)[0])


declare("linalg_inv(Tensor A) -> Tensor", composite=_inv, where="n")
declare("inverse(Tensor self) -> Tensor", composite=lambda self: aten.linalg_inv(self))


# -- determinant -----------------------------------------------------------------------------------------------------


def _as_matrices(x: Any) -> Any:
    return aten.unsqueeze(aten.unsqueeze(x, -1), -1)


def _products_of_others(x: Any) -> Any:
    """In each place the product of the elements in the other places of the row."""
    ones = aten.ones_like(aten.narrow(x, -1, 0, 1))
    count = x._a.shape[-1] - 1
    before = aten.cumprod(aten.cat([ones, aten.narrow(x, -1, 0, count)], -1), -1)
    turned = aten.flip(aten.narrow(x, -1, 1, count), (-1,))
    return before * aten.flip(aten.cumprod(aten.cat([ones, turned], -1), -1), (-1,))


def _det_backward(grad: Tensor, A: Any, result: Any) -> Any:
    if result.is_meta or not bool(aten.any(result == 0)):
        return _as_matrices(grad * conj(result)) * adjoint(aten.linalg_inv(A))
    # A singular matrix has no inverse, but minors: they follow from its singular values.
    u, s, vh = aten._linalg_svd(A, False, True)
    turn = conj(grad.conj() * aten._linalg_det(u) * aten._linalg_det(vh))
    return _as_matrices(turn) * aten.matmul(u * aten.unsqueeze(_products_of_others(s), -2), vh)


declare("_linalg_det(Tensor A) -> Tensor", cpu=kernels.det, where="f", node="LinalgDetBackward0",
        grad={"A": _det_backward})


def _slogdet_backward(grads: Any, A: Any, result0: Any) -> Any:
    sign, logabs = grads
    inverse = adjoint(aten.linalg_inv_ex(A)[0])  # without a complaint: the logarithm of 0 has no derivative
    if A.dtype.is_complex:
        # The sign turns with the imaginary part of the logarithm of the determinant.
        turn = aten.imag(conj(sign) * result0)
        return _as_matrices(aten.complex(logabs, -turn)) * inverse
    return _as_matrices(logabs) * inverse


declare(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", cpu=kernels.slogdet,
    where="f", node="LinalgSlogdetBackward0", grad={"A": _slogdet_backward},
)


def _det(a: Tensor) -> Tensor:
    check_matrix("linalg.det", a, square=True)
    return aten._linalg_det(a)


def _slogdet(a: Tensor) -> Any:
    check_matrix("linalg.slogdet", a, square=True)
    return named("linalg_slogdet", ("sign", "logabsdet"))(aten._linalg_slogdet(a))


def _logdet(self: Tensor) -> Tensor:
    check_matrix("logdet", self, square=True)
    sign, size = aten._linalg_slogdet(self)
    if sign.is_complex():
        return size + aten.log(sign)
    return aten.where(sign == -1, float("nan"), size)


declare("linalg_det(Tensor A) -> Tensor", composite=_det, where="n")
declare("det(Tensor self) -> Tensor", composite=lambda self: aten.linalg_det(self))
declare("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", composite=_slogdet, where="n")
declare("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
        composite=lambda self: named("slogdet", ("sign", "logabsdet"))(aten.linalg_slogdet(self)))
declare("logdet(Tensor self) -> Tensor", composite=_logdet)


# -- solve -----------------------------------------------------------------------------------------------------------


def _solve_backward(grad: Tensor, A: Any, result: Any, left: bool) -> Any:
    right = aten._linalg_solve_ex(adjoint(A), grad, left=left)
    if kernels.is_vector(A._a.shape, result._a.shape):
        return -aten.matmul(aten.unsqueeze(right, -1), conj(aten.unsqueeze(result, -2))), right
    if left:
        return -aten.matmul(right, adjoint(result)), right
    return -aten.matmul(adjoint(result), right), right


declare(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> Tensor", cpu=kernels.solve,
    where="f", node="LinalgSolveExBackward0", meta=regular(kernels.solve), grad={("A", "B"): _solve_backward},
)


def _solve(a: Tensor, b: Tensor, left: bool) -> Tensor:
    check_matrix("linalg.solve", a, square=True)
    if a._a.dtype != b._a.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type "
                           f"{pretty(a.dtype)} and B of type {pretty(b.dtype)} instead")
    vector = kernels.is_vector(a._a.shape, b._a.shape)
    if not b.ndim:
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
                           "In this case linalg.solve is equivalent to B / A.squeeze(-1)")
    rows = b._a.shape[-1 if vector or not left else -2]
    if rows != a._a.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        sizes = (rows, 1) if vector else b._a.shape[-2:]
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {equation} "
                           f"({a._a.shape[-2]}x{a._a.shape[-1]} and {sizes[0]}x{sizes[1]})")
    return aten._linalg_solve_ex(a, b, left=left, check_errors=True)


declare("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", composite=_solve, where="n")


# -- Cholesky --------------------------------------------------------------------------------------------------------


def _halved_lower(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    diagonal = aten.diagonal(x, 0, -2, -1)
    return aten.tril(x) - aten.diag_embed(diagonal * 0.5, 0, -2, -1)


def _cholesky_backward(grad: Tensor, result0: Any, upper: bool) -> Any:
    factor, slope = (adjoint(result0), adjoint(grad)) if upper else (result0, grad)
    lower = aten.matmul(adjoint(factor), slope)
    inner = (aten.tril(lower) + adjoint(aten.tril(lower, -1))) * 0.5
    made = aten.linalg_solve_triangular(adjoint(factor), inner, upper=True)
    return aten.linalg_solve_triangular(factor, made, upper=False, left=False)


declare(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    cpu=kernels.cholesky_ex, meta=regular(kernels.cholesky_ex), where="n", differentiable=(0,),
    grad={"self": _cholesky_backward},
)


def _cholesky(self: Tensor, upper: bool) -> Tensor:
    check_matrix("linalg.cholesky", self, square=True)
    return renamed("linalg.cholesky_ex", "linalg.cholesky",
                    lambda: aten.linalg_cholesky_ex__default(self, upper=upper, check_errors=True)[0])


declare("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", composite=_cholesky, where="n")



def _old_cholesky(a: Any, upper: bool) -> Any:
    check_matrix("cholesky", wrap_known(a), square=True)
    warn_once("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
              "release. L = torch.cholesky(A) is L = torch.linalg.cholesky(A).")
    return kernels.cholesky_ex(a, upper, True, "cholesky")[0]


declare("cholesky(Tensor self, bool upper=False) -> Tensor", cpu=_old_cholesky, meta=regular(_old_cholesky),
        grad={"self": lambda grad, result, upper: _cholesky_backward(grad, result, upper)})


# -- QR --------------------------------------------------------------------------------------------------------------


def _tall_qr_backward(grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    """For A with at least as many rows as columns."""
    inner = aten.matmul(r, adjoint(grad_r)) - aten.matmul(adjoint(grad_q), q)
    strict = aten.tril(inner, -1)
    # The lower triangle, mirrored to the upper one; the diagonal is real where it matters.
    diagonal = aten.diag_embed(aten.real(aten.diagonal(inner, 0, -2, -1)), 0, -2, -1)
    mirrored = strict + adjoint(strict) + diagonal
    return aten.linalg_solve_triangular(adjoint(r), grad_q + aten.matmul(q, mirrored), upper=False, left=False)


def _qr_backward(grads: Any, A: Any, mode: str, result0: Any, result1: Any) -> Any:
    grad_q, grad_r = grads
    rows, columns = A._a.shape[-2:]
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to require gradients.")
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if rows >= columns:
        return _tall_qr_backward(grad_q, grad_r, result0, result1)
    # A = [X Y] and R = [U V] with X = QU and V = Q^H Y.
    rest = columns - rows
    grad_v = aten.narrow(grad_r, -1, rows, rest)
    total_q = grad_q + aten.matmul(aten.narrow(A, -1, rows, rest), adjoint(grad_v))
    grad_x = _tall_qr_backward(total_q, aten.narrow(grad_r, -1, 0, rows), result0, aten.narrow(result1, -1, 0, rows))
    return aten.cat([grad_x, aten.matmul(result0, grad_v)], -1)


def _checked_qr(kernel: Any) -> Any:
    def qr(a: Any, mode: str) -> Any:
        check_matrix("linalg.qr", wrap_known(a))
        if mode not in ("reduced", "r", "complete"):
            raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
                               "or 'complete'")
        return kernel(a, mode)

    return qr


declare('linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)', where="n",
        cpu=around(kernels.qr, _checked_qr),
        grad={"A": _qr_backward})


@choose("linalg_qr", where="n")
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """An orthonormal and an upper triangular factor."""
    return named("linalg_qr", ("Q", "R"))(aten.linalg_qr__default(A, mode))


def _old_qr(self: Tensor, some: bool) -> Any:
    if not isinstance(some, bool):
        raise TypeError(f"qr(): argument 'some' must be bool, not {type(some).__name__}")
    warn_once("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release. Its "
              "boolean 'some' is the string 'mode' there.")
    return named("qr", ("Q", "R"))(aten.linalg_qr(self, "reduced" if some else "complete"))


declare("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", composite=_old_qr)


@choose("linalg_inv_ex", where="n")
def _inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    if not THREAD.state.autocast:  # which brings 16-bit floats to float32
        check_matrix("linalg.inv", A, square=True)
    return named("linalg_inv_ex", ("inverse", "info"))(aten.linalg_inv_ex__default(A, check_errors=check_errors))


@choose("linalg_cholesky_ex", where="n")
def _cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    if not THREAD.state.autocast:
        check_matrix("linalg.cholesky", input, square=True)
    return named("linalg_cholesky_ex", ("L", "info"))(
        aten.linalg_cholesky_ex__default(input, upper=upper, check_errors=check_errors))
