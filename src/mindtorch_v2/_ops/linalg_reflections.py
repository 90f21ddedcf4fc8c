"""Products of the reflections that a QR decomposition is made of."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import factorization as kernels
from .._dispatch.dispatcher import write_results
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dtype import FLOAT
from .._tensor import Tensor, wrap_known
from .formulas import conj
from .linalg import adjoint, check_matrix
from .return_types import named


def _no_derivative(grads: Any) -> Any:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


def _geqrf(a: Any) -> Any:
    check_matrix("torch.geqrf", wrap_known(a))  # here and not before, where autocast has not yet cast
    return kernels.geqrf(a)


declare("geqrf(Tensor self) -> (Tensor a, Tensor tau)", cpu=_geqrf, where="n", grad={"self": _no_derivative})


@choose("geqrf", where="fm")
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """The reflections of a QR decomposition, as LAPACK packs them."""
    made = named("geqrf", ("a", "tau"))(aten.geqrf__default(input))
    return made if out is None else write_results("geqrf", out, made)


def _refuse_dtype(kernel: str, a: Tensor) -> None:
    """LAPACK computes floats and complex numbers of at least 32 bits."""
    if a.dtype.category < FLOAT or a._a.dtype.itemsize < 4:
        raise unsupported(kernel, a._a.dtype)


def _check_product(a: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    rows, columns = a._a.shape[-2:]
    if rows < columns:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if columns < tau._a.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if a.ndim - tau.ndim != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{tau.ndim} and input.ndim is equal to {a.ndim}")
    if tau._a.shape[:-1] != a._a.shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau._a.shape[:-1])}")
    if a.dtype is not tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {pretty(tau.dtype)} does not match input dtype {pretty(a.dtype)}")
    _refuse_dtype("orgqr_cpu", a)


def _check_ormqr(self: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    if self.ndim < 2 or other.ndim < 2:
        raise RuntimeError(f"torch.ormqr: {'input' if self.ndim < 2 else 'other'} must have at least 2 dimensions.")
    side = -2 if left else -1
    if other._a.shape[side] != self._a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    for name, one, wanted in (("tau", tau, self.ndim - 1), ("other", other, self.ndim)):
        if one.ndim != wanted:
            said = "one dimension less than" if name == "tau" else "the same number of dimensions as"
            raise RuntimeError(f"torch.ormqr: Expected {name} to have {said} input, but got {name}.ndim equal to "
                               f"{one.ndim} and input.ndim is equal to {self.ndim}")
        if one._a.shape[:self.ndim - 2] != self._a.shape[:-2]:
            raise RuntimeError(f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], "
                               f"but got {list(one._a.shape[:self.ndim - 2])}")
        if one.dtype is not self.dtype:
            raise RuntimeError(f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype "
                               f"{pretty(self.dtype)} and {name} has dtype {pretty(one.dtype)}")
    if tau._a.shape[-1] > self._a.shape[-1]:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if tau._a.shape[-1] != min(other._a.shape[side], self._a.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _refuse_dtype("ormqr_cpu", self)


# -- gradients -------------------------------------------------------------------------------------------------------


def _reflectors(a: Tensor, tau: Tensor) -> list[tuple[Any, Any]]:
    """Each reflection's vector, as a column, and its factor, as a matrix."""
    rows, count = a._a.shape[-2], tau._a.shape[-1]
    lower = aten.tril(aten.narrow(a, -1, 0, count), -1) + aten.eye(rows, count, dtype=a.dtype, device=a.device)
    return [(aten.narrow(lower, -1, k, 1), aten.unsqueeze(aten.narrow(tau, -1, k, 1), -1)) for k in range(count)]


def _of_reflections(grad: Any, start: Any, steps: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """The gradients of the vectors and of the factors of reflections, of which the last one was applied first."""
    between = [start]
    for vector, factor in reversed(steps[1:]):
        x = between[-1]
        between.append(x - factor * aten.matmul(vector, aten.matmul(adjoint(vector), x)))
    of_vectors, of_factors = [], []
    for (vector, factor), x in zip(steps, reversed(between), strict=True):
        along, back = aten.matmul(adjoint(vector), x), aten.matmul(adjoint(vector), grad)
        of_factors.append(-aten.sum__dim_IntList(conj(along) * back, (-1,)))
        of_vectors.append(-conj(factor) * aten.matmul(grad, adjoint(along)) - factor * aten.matmul(x, adjoint(back)))
        grad = grad - conj(factor) * aten.matmul(vector, back)
    return of_vectors, of_factors


def _joined(of_vectors: list[Any], of_factors: list[Any], a: Any) -> tuple[Any, Any]:
    """Above their ones vectors have zeros that nobody reads."""
    made, rest = aten.tril(aten.cat(of_vectors, -1), -1), a._a.shape[-1] - len(of_vectors)
    return (aten.constant_pad_nd(made, (0, rest)) if rest else made), aten.cat(of_factors, -1)


def _product_backward(grad: Tensor, input: Any, tau: Any) -> Any:
    if not tau._a.shape[-1]:
        return aten.zeros_like(input), aten.zeros_like(tau)
    start = aten.expand(aten.eye(*input._a.shape[-2:], dtype=input.dtype, device=input.device), input._a.shape)
    return _joined(*_of_reflections(grad, start, _reflectors(input, tau)), input)


def _ormqr_backward(grad: Tensor, self: Any, input2: Any, input3: Any, left: bool, transpose: bool) -> Any:
    of_other = aten.ormqr(self, input2, grad, left, not transpose)
    if not input2._a.shape[-1]:
        return aten.zeros_like(self), aten.zeros_like(input2), of_other
    start = input3 if left else adjoint(input3)
    steps = _reflectors(self, input2)
    # C Q is the adjoint of Q^H C^H.
    turned = transpose == left
    if turned:
        steps = [(vector, conj(factor)) for vector, factor in reversed(steps)]
    of_vectors, of_factors = _of_reflections(grad if left else adjoint(grad), start, steps)
    if turned:
        of_vectors, of_factors = of_vectors[::-1], [conj(one) for one in reversed(of_factors)]
    return (*_joined(of_vectors, of_factors, self), of_other)


# -- products --------------------------------------------------------------------------------------------------------


def _householder_product(a: Any, tau: Any) -> Any:
    _check_product(wrap_known(a), wrap_known(tau))
    return kernels.householder_product(a, tau)


def _ormqr(a: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
    _check_ormqr(wrap_known(a), wrap_known(tau), wrap_known(other), left)
    return kernels.ormqr(a, tau, other, left, transpose)


declare("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", cpu=_householder_product, where="n",
        grad={("input", "tau"): _product_backward})
declare("orgqr(Tensor self, Tensor input2) -> Tensor",
        composite=lambda self, tau: aten.linalg_householder_product(self, tau))
declare("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        cpu=_ormqr, grad={("self", "input2", "input3"): _ormqr_backward})
