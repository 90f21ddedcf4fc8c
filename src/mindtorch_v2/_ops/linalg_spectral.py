"""Linear algebra on singular values and eigenvalues: decompositions, pseudo-inverse, least squares, norms, rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._backends.base import placed, to_host
from .._backends.cpu import factorization
from .._backends.cpu import linalg as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import FLOAT, DType, as_dtype, int64, promote_types
from .._shape import broadcast_shapes, wrap_dim
from .._tensor import LEVELS, Tensor, wrap, wrap_known
from .linalg import adjoint, check_matrix, refuse_phase, unused
from .return_types import named


def _differences(x: Any) -> Any:
    """x_k - x_j in row j, column k, with ones on the diagonal, to divide by."""
    return aten.unsqueeze(x, -2) - aten.unsqueeze(x, -1) + aten.eye(x._a.shape[-1], dtype=x.dtype, device=x.device)


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _diagonal_matrix(x: Any) -> Any:
    return aten.diag_embed(x, 0, -2, -1)


def _svd_backward(grads: Any, A: Any, full_matrices: bool, result0: Any, result1: Any, result2: Any) -> Any:
    grad_u, grad_s, grad_vh = grads
    u, s, vh = result0, result1, result2
    rows, columns = A._a.shape[-2:]
    if full_matrices and rows != columns:
        count = min(rows, columns)
        # The vectors beyond the rank are arbitrary: a gradient that depends on them has no meaning.
        u, grad_u = aten.narrow(u, -1, 0, count), aten.narrow(grad_u, -1, 0, count)
        vh, grad_vh = aten.narrow(vh, -2, 0, count), aten.narrow(grad_vh, -2, 0, count)
    if unused(grad_u, grad_vh):
        return aten.matmul(u, aten.unsqueeze(grad_s, -1) * vh)
    gaps = _differences(aten.pow(s, 2))
    from_u = _skew(aten.matmul(adjoint(u), grad_u))
    from_v = _skew(aten.matmul(vh, adjoint(grad_vh)))
    row, column = aten.unsqueeze(s, -2), aten.unsqueeze(s, -1)
    inner = from_u / gaps * row + column * (from_v / gaps)
    if A.dtype.is_complex:
        # Where j = k the two lines above count the turn of each pair of vectors once too often.
        both = aten.diagonal(from_u, 0, -2, -1)
        refuse_phase("svd_backward", "singular vectors", both + aten.diagonal(from_v, 0, -2, -1))
        inner = inner - _diagonal_matrix(aten.diagonal(inner, 0, -2, -1)) + _diagonal_matrix(both / (2 * s))
    inner = inner + _diagonal_matrix(grad_s)
    whole = aten.matmul(u, aten.matmul(inner, vh))
    if rows > columns:
        outside = grad_u / row
        whole = whole + aten.matmul(outside - aten.matmul(u, aten.matmul(adjoint(u), outside)), vh)
    if columns > rows:
        outside = grad_vh / column
        whole = whole + aten.matmul(u, outside - aten.matmul(aten.matmul(outside, adjoint(vh)), vh))
    return whole


declare(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, "
    "Tensor S, Tensor Vh)", cpu=kernels.svd, where="f", node="LinalgSvdBackward0", grad={"A": _svd_backward},
)


def _refuse_driver(driver: Any) -> None:
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")


def _svd(a: Tensor, full_matrices: bool, driver: Any) -> Any:
    check_matrix("linalg.svd", a)
    _refuse_driver(driver)
    return named("linalg_svd", ("U", "S", "Vh"))(aten._linalg_svd(a, full_matrices, True))


def _needs_vectors(a: Tensor) -> bool:
    """Values alone are cheaper, but their gradient needs the vectors."""
    return (a.requires_grad and THREAD.state.grad) or bool(LEVELS)


def _svdvals(a: Tensor, driver: Any) -> Tensor:
    check_matrix("linalg.svd", a)
    _refuse_driver(driver)
    return aten._linalg_svd(a, False, _needs_vectors(a))[1]


def _old_svd(self: Tensor, some: bool, compute_uv: bool) -> Any:
    check_matrix("linalg.svd", self)
    if not compute_uv:
        *batch, rows, columns = self._a.shape
        empty = [aten.zeros((*batch, size, size), dtype=self.dtype, device=self.device) for size in (rows, columns)]
        return named("svd", ("U", "S", "V"))((empty[0], aten.linalg_svdvals(self), empty[1]))
    u, s, vh = aten._linalg_svd(self, not some, True)
    return named("svd", ("U", "S", "V"))((u, s, adjoint(vh)))


declare("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        composite=_svd, where="n")
declare("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", composite=_svdvals, where="n")
declare("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", composite=_old_svd)


def _eigh_backward(grads: Any, result0: Any, result1: Any) -> Any:
    grad_values, grad_vectors = grads
    vectors = result1
    if unused(grad_vectors):
        return aten.matmul(vectors, aten.unsqueeze(grad_values, -1) * adjoint(vectors))
    inner = aten.matmul(adjoint(vectors), grad_vectors)
    refuse_phase("linalg_eigh_backward", "eigenvectors", aten.diagonal(inner, 0, -2, -1))
    inner = _skew(inner) / (2 * _differences(result0))  # A Hermitian matrix has a Hermitian gradient
    # The length of an eigenvector is fixed and its phase arbitrary: nothing flows along the vector itself.
    inner = inner - _diagonal_matrix(aten.diagonal(inner, 0, -2, -1)) + _diagonal_matrix(grad_values)
    return aten.matmul(vectors, aten.matmul(inner, adjoint(vectors)))


declare('_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
        cpu=kernels.eigh, where="f", node="LinalgEighBackward0", grad={"A": _eigh_backward})


def _eigh_input(a: Tensor, uplo: str) -> str:
    check_matrix("linalg.eigh", a, square=True)
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {uplo}")
    return uplo.upper()


def _eigh(self: Tensor, uplo: str) -> Any:
    found = aten._linalg_eigh(self, _eigh_input(self, uplo), True)
    return named("linalg_eigh", ("eigenvalues", "eigenvectors"))(found)


declare('linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)', composite=_eigh,
        where="n")
declare('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', where="n",
        composite=lambda self, uplo: aten._linalg_eigh(self, _eigh_input(self, uplo),
                                                       _needs_vectors(self))[0])


# -- pseudo-inverse, least squares, rank -----------------------------------------------------------------------------


def _pinv_backward(grad: Tensor, self: Tensor, result: Any) -> Any:
    """From dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P."""
    p, ph, gh = result, adjoint(result), adjoint(grad)
    first = aten.matmul(gh, aten.matmul(p, ph))
    second = aten.matmul(ph, aten.matmul(p, gh))
    return (first - aten.matmul(self, aten.matmul(p, first)) + second - aten.matmul(aten.matmul(second, p), self)
            - aten.matmul(ph, aten.matmul(grad, ph)))


def _pinv_kernel(a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    check_matrix("linalg.pinv", wrap_known(a))
    if hermitian:
        check_matrix("linalg.eigh", wrap_known(a), square=True)
    return kernels.pinv(a, atol, rtol, hermitian)


declare(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
    "Tensor", cpu=_pinv_kernel, where="n", grad={"self": _pinv_backward},
)


def _limit(value: Any, where: Any) -> Any:
    return value if value is None or isinstance(value, Tensor) else aten.scalar_tensor(float(value), device=where)


def _pinv(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    atol, rtol = _limit(atol, self.device), _limit(rtol, self.device)
    _refuse_complex("linalg.pinv", atol, rtol)
    return aten.linalg_pinv__atol_rtol_tensor(self, atol=atol, rtol=rtol, hermitian=hermitian)


declare("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> "
        "Tensor", composite=_pinv, where="n")
for _overload, _kind in (("", "float"), (".rcond_tensor", "Tensor")):
    declare(f"linalg_pinv{_overload}(Tensor self, {_kind} rcond, bool hermitian=False) -> Tensor", where="n",
            composite=lambda self, rcond, hermitian: _pinv(self, None, rcond, hermitian))


@choose("linalg_pinv", where="n")
def linalg_pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
                rtol: Any = None) -> Tensor:
    """The pseudo-inverse, of the singular values above a tolerance."""
    tensors = any(isinstance(t, Tensor) for t in (rcond, atol, rtol))
    if rcond is not None:
        return (aten.linalg_pinv__rcond_tensor if tensors else aten.linalg_pinv__default)(input, rcond, hermitian)
    _refuse_complex("linalg.pinv", atol, rtol)
    form = aten.linalg_pinv__atol_rtol_tensor if tensors else aten.linalg_pinv__atol_rtol_float
    return form(input, atol=atol, rtol=rtol, hermitian=hermitian)


declare("pinverse(Tensor self, float rcond=1e-15) -> Tensor",
        composite=lambda self, rcond: aten.linalg_pinv(self, rcond))


def _check_least_squares(self: Tensor, b: Tensor, driver: Any) -> bool:
    """PyTorch's conditions, and whether the right-hand sides are vectors."""
    check_matrix("torch.linalg.lstsq", self)
    if not b.ndim:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= self.ndim - b.ndim <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                           "other.dim()) <= 1")
    if self.dtype is not b.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{pretty(self.dtype)} and other's dtype {pretty(b.dtype)}")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = b.ndim == self.ndim - 1
    if self.shape[-2] != b.shape[-1 if vector else -2]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size(-{1 if vector else 2})")
    return vector


def _lstsq_kernel(a: Any, b: Any, rcond: Any, driver: Any) -> Any:
    vector = _check_least_squares(wrap_known(a), wrap_known(b), driver)
    limit = rcond if rcond is not None else float(np.finfo(a.dtype).eps) * max(a.shape[-2:])
    right = b[..., None] if vector else b
    if a.shape[:-2] != right.shape[:-2]:
        lead = broadcast_shapes(a.shape[:-2], right.shape[:-2])
        a, right = (np.broadcast_to(one, (*lead, *one.shape[-2:])) for one in (a, right))
    solution, *others = factorization.lstsq(a, right, limit, driver or "gelsy")
    return (solution[..., 0] if vector else solution, *others)


def _lstsq_backward(grads: Any, self: Any, b: Any, result0: Any) -> Any:
    vector = b.ndim == self.ndim - 1
    grad, right, solution = (aten.unsqueeze(one, -1) if vector else one for one in (grads[0], b, result0))
    inverse = aten.linalg_pinv(self)
    of_matrix = _pinv_backward(aten.matmul(grad, adjoint(right)), self, inverse)
    of_right = aten.matmul(adjoint(inverse), grad)
    if grads[1]._a.size:
        # The sum of squares does not change with the solution, which makes it smallest.
        error = (aten.matmul(self, solution) - right) * aten.unsqueeze(grads[1], -2) * 2
        of_matrix, of_right = of_matrix + aten.matmul(error, adjoint(solution)), of_right - error
    return of_matrix, aten.squeeze__dim(of_right, -1) if vector else of_right


declare("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
        "Tensor residuals, Tensor rank, Tensor singular_values)", cpu=_lstsq_kernel, where="n", differentiable=(0, 1),
        grad={("self", "b"): _lstsq_backward})


@choose("linalg_lstsq", where="n")
def linalg_lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: Any = None) -> Any:
    """The solutions of least squares problems, and what the driver found out on the way."""
    return named("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))(
        aten.linalg_lstsq__default(input, b, rcond, driver=driver))


def _refuse_complex(name: str, atol: Any, rtol: Any) -> None:
    for kind, limit in (("atol", atol), ("rtol", rtol)):
        if isinstance(limit, Tensor) and limit.dtype.is_complex:
            raise RuntimeError(f"torch.{name}: {kind} tensor of complex type is not supported. Got "
                               f"{pretty(limit.dtype)}")


def _matrix_rank(self: Tensor, tol: Any, hermitian: bool, atol: Any, rtol: Any) -> Tensor:
    check_matrix("linalg.matrix_rank", self)
    if hermitian:
        check_matrix("linalg.eigh", self, square=True)
    _refuse_complex("linalg.matrix_rank", atol if tol is None else tol, rtol)
    plain = aten.detach(self)
    if not self._a.size:
        return aten.zeros(self._a.shape[:-2], dtype=int64, device=self.device)
    values = aten.abs(aten.linalg_eigvalsh(plain)) if hermitian else aten.linalg_svdvals(plain)
    if tol is not None:
        atol, rtol = tol, 0.0
    low, relative = kernels.tolerances(plain._a, to_host(atol._a) if isinstance(atol, Tensor) else atol,
                                       to_host(rtol._a) if isinstance(rtol, Tensor) else rtol)
    found = to_host(values._a)
    limit = np.maximum(low, relative * found.max(-1))[..., None].astype(found.dtype)
    return aten.sum__dim_IntList(aten.gt(values, wrap(placed(limit, self.device))), (-1,), dtype=int64)


for _overload, _kind, _self in (("", "float", "self"), (".tol_tensor", "Tensor", "input")):
    declare(f"linalg_matrix_rank{_overload}(Tensor {_self}, {_kind} tol, bool hermitian=False) -> Tensor", where="n",
            composite=lambda self, tol, hermitian: _matrix_rank(self, tol, hermitian, None, None))
    declare(f"linalg_matrix_rank.atol_rtol_{_kind.lower()}(Tensor {_self}, *, {_kind}? atol=None, {_kind}? rtol=None, "
            "bool hermitian=False) -> Tensor", where="n",
            composite=lambda self, atol, rtol, hermitian: _matrix_rank(self, None, hermitian, atol, rtol))


@choose("linalg_matrix_rank", where="n")
def linalg_matrix_rank(input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None,
                       rtol: Any = None) -> Tensor:
    """The number of singular values above a tolerance."""
    if tol is not None and (atol is not None or rtol is not None):
        raise TypeError("linalg_matrix_rank() received an invalid combination of arguments: tol is the older form of "
                        "atol and rtol")
    tensors = any(isinstance(t, Tensor) for t in (tol, atol, rtol))
    if tol is not None:
        form = aten.linalg_matrix_rank__tol_tensor if tensors else aten.linalg_matrix_rank__default
        return form(input, tol, hermitian)
    form = aten.linalg_matrix_rank__atol_rtol_tensor if tensors else aten.linalg_matrix_rank__atol_rtol_float
    return form(input, atol=atol, rtol=rtol, hermitian=hermitian)


# -- norms -----------------------------------------------------------------------------------------------------------


def _matrix_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if self.dtype.category < FLOAT:
        raise RuntimeError("linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
                           f"{pretty(self.dtype)}")
    kind = self.dtype if dtype is None else as_dtype(dtype, "linalg_matrix_norm")
    if kind.category < FLOAT:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be floating point or complex, but got {pretty(kind)}")
    if self.dtype.is_complex and not kind.is_complex:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be complex for complex inputs, but got {pretty(kind)}")
    if kind.is_complex and not self.dtype.is_complex:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be real for real inputs, but got {pretty(kind)}")
    if promote_types(self.dtype, kind) is not kind:
        raise RuntimeError(f"linalg.matrix_norm: the dtype of the input ({pretty(self.dtype)}) should be convertible "
                           f"without narrowing to the specified dtype ({pretty(kind)})")
    if len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got " + " ".join(map(str, dim)))
    first, second = (wrap_dim(d, self.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return aten.linalg_vector_norm(self, 2, (first, second), keepdim, dtype=dtype)
    value = self if dtype is None else aten.to(self, dtype)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        if value._a.dtype.itemsize < 4:
            raise RuntimeError(f"linalg.matrix_norm: Low precision dtypes not supported. Got {pretty(value.dtype)}")
        singular = aten.linalg_svdvals(aten.movedim(value, (first, second), (-2, -1)))
        if ord == "nuc":
            made = aten.sum__dim_IntList(singular, (-1,), keepdim)
        else:
            made = _extreme(singular, -1, ord > 0, keepdim)
        return aten.movedim(aten.unsqueeze(made, -1), (-2, -1), (first, second)) if keepdim else made
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    # Sums along one dimension, then the largest or smallest along the other.
    along, other = (first, second) if abs(ord) == 1 else (second, first)
    sums = aten.linalg_vector_norm(value, 1, (along,), keepdim)
    other -= 0 if keepdim or other < along else 1
    return _extreme(sums, other, ord > 0, keepdim)


def _extreme(values: Tensor, dim: int, largest: bool, keepdim: bool) -> Any:
    """The largest, which is 0 where there is nothing, or the smallest of values that are not negative."""
    if largest and not values._a.shape[dim]:
        return aten.sum__dim_IntList(values, (dim,), keepdim)
    return (aten.amax if largest else aten.amin)(values, (dim,), keepdim)


def _norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    dims = None if dim is None else tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None:
        return aten.linalg_vector_norm(self, 2, dims, keepdim, dtype=dtype)
    if dims is None and self.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{self.ndim}D.")
    dims = dims or tuple(range(self.ndim))
    if len(dims) == 1 and not isinstance(ord, str):
        return aten.linalg_vector_norm(self, ord, dims, keepdim, dtype=dtype)
    return aten.linalg_matrix_norm(self, ord, dims, keepdim, dtype=dtype)


declare("linalg_matrix_norm(Tensor self, Scalar ord='fro', int[] dim=(-2, -1), bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor", composite=_matrix_norm, where="n")
declare("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor", composite=_norm, where="n")
