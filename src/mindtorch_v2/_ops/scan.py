"""Scans along a dimension: running sums, products and extremes, differences, integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import scan as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import bool_, finfo
from .._shape import wrap_dim
from .._tensor import Tensor
from .formulas import conj
from .reduce import owned
from .return_types import named


def reversed_scan(scan: Any, x: Tensor, dim: int) -> Tensor:
    """A scan from the other end."""
    if x._a.size <= 1 or x._a.shape[wrap_dim(dim, x.ndim)] == 1:
        return scan(x, dim)
    return aten.flip(scan(aten.flip(x, [dim]), dim), [dim])


def _cumsum_backward(grad: Tensor, dim: int) -> Tensor:
    if grad._a.size <= 1 or grad._a.shape[wrap_dim(dim, grad.ndim)] == 1:
        return grad
    return aten.flip(aten.cumsum(aten.flip(grad, [dim]), dim), [dim])


declare(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cpu=kernels.cumsum, inplace=True,
    grad={"self": _cumsum_backward},
)


def _cumprod_backward(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    if input._a.size <= 1 or input._a.shape[wrap_dim(dim, input.ndim)] == 1:
        return grad
    source = conj(input)
    weighted = conj(output) * grad
    zero = aten.eq(source, 0)
    if not aten.item(aten.any(zero)):
        return reversed_scan(aten.cumsum, weighted, dim) / source
    if THREAD.state.grad:
        return _cumprod_slopes(grad, source, wrap_dim(dim, input.ndim))
    # Along each line: before the first zero divide as usual; at it, leave it out of the products; after it nothing.
    zeros_so_far = aten.cumsum(zero, dim)
    first = aten.logical_and(zero, aten.eq(zeros_so_far, 1))
    before = reversed_scan(aten.cumsum, weighted, dim) / aten.masked_fill(source, zero, 1)
    before = aten.masked_fill(before, aten.gt(zeros_so_far, 0), 0)
    without = aten.cumprod(aten.masked_fill(source, first, 1), dim)
    without = aten.masked_fill(without, aten.eq(zeros_so_far, 0), 0)
    at_zero = aten.sum(without * grad, dim, True)
    return aten.where(first, at_zero, before)


def _cumprod_slopes(grad: Tensor, source: Tensor, dim: int) -> Tensor:
    """The same by the definition, which can be differentiated again where there are zeros; its cost is quadratic."""
    line = aten.transpose(source, dim, -1)
    count = line._a.shape[-1]
    places = aten.arange(count, device=source.device)
    chosen = aten.eq(aten.unsqueeze(places, 1), places)
    # products[..., k, j]: the product of the first j + 1 elements without the k-th.
    table = aten.expand(aten.unsqueeze(line, -2), (*line._a.shape[:-1], count, count))
    products = aten.cumprod(aten.masked_fill(table, chosen, 1), -1)
    products = aten.masked_fill(products, aten.gt(aten.unsqueeze(places, 1), places), 0)
    slopes = aten.sum(products * aten.unsqueeze(aten.transpose(grad, dim, -1), -2), -1)
    return aten.transpose(slopes, dim, -1)


declare("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", composite=_cumprod_backward,
        where="n")
declare(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cpu=kernels.cumprod, inplace=True,
    grad={"self": lambda grad, self, dim, result: aten.cumprod_backward(grad, self, dim, result)},
)


# -- running extremes ----------------------------------------------------------------------------------------------


def _running_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    if not input._a.size:
        return input
    zeros = aten.zeros(input._a.shape, dtype=grad.dtype, device=grad.device)
    return owned(aten.scatter_add_(zeros, dim, indices, grad))


declare("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
        composite=_running_backward, where="n")


def _running(name: str, ufunc: np.ufunc) -> None:
    result = named(name, ("values", "indices"))
    declare(f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
            cpu=kernels.running_extreme(name, ufunc), where="n", differentiable=(0,),
            grad={"self": lambda grad, self, dim, result1: aten.cummaxmin_backward(grad, self, result1, dim)})

    @choose(name)
    def running(input: Tensor, dim: int, *, out: Any = None) -> Any:
        return (result if out is None else result.written)(getattr(aten, f"{name}__default")(input, dim, out=out))

    running.__name__ = name
    running.__doc__ = f"The running {name[3:]}imum along a dimension, with its positions."


_running("cummax", np.maximum)
_running("cummin", np.minimum)


def _logcumsumexp_backward(grad: Tensor, self: Tensor, dim: int, result: Any) -> Any:
    if not grad.ndim or not grad._a.size:
        return grad
    if THREAD.state.grad or grad.dtype.is_complex:
        # Linear in the gradient, which may be zero, so that it can be differentiated again: by the share that each
        # element has in each sum.
        terms, sums = (aten.movedim(x, dim, -1) for x in (self, result))
        shares = aten.unsqueeze(terms, -2) - aten.unsqueeze(sums, -1)
        count = terms._a.shape[-1]
        later = aten.triu(aten.ones((count, count), dtype=bool_, device=grad.device), 1)
        shares = aten.masked_fill(aten.exp(aten.masked_fill(shares, later, 0)), later, 0)
        made = aten.matmul(aten.unsqueeze(aten.movedim(grad, dim, -1), -2), conj(shares))
        return aten.movedim(aten.squeeze__dim(made, -2), -1, dim)
    # Positive and negative gradients are summed apart, as logarithms.
    lowest = aten.scalar_tensor(finfo(grad.dtype).min, dtype=grad.dtype, device=grad.device)
    size = aten.log(aten.abs(grad))
    positive = aten.where(aten.gt(grad, 0), size, lowest)
    negative = aten.where(aten.lt(grad, 0), size, lowest)

    def part(logs: Any) -> Any:
        return aten.exp(reversed_scan(aten.logcumsumexp, logs - result, dim) + self)

    return part(positive) - part(negative)


declare("logcumsumexp(Tensor self, int dim) -> Tensor", cpu=kernels.logcumsumexp,
        grad={"self": _logcumsumexp_backward})


# -- differences and integrals -------------------------------------------------------------------------------------


def _diff(self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, self.ndim)
    if n == 0:
        return aten.copy_(aten.zeros_like(self), self)
    pieces = [piece for piece in (prepend, self, append) if piece is not None]
    if any(piece.ndim != self.ndim for piece in pieces):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    rest = self._a.shape[:dim] + self._a.shape[dim + 1:]
    if any(piece._a.shape[:dim] + piece._a.shape[dim + 1:] != rest for piece in pieces):
        raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except along "
                           "the differencing dimension")
    made = self if len(pieces) == 1 else aten.cat(pieces, dim)
    subtract = aten.logical_xor if made.dtype is bool_ else aten.sub
    for _ in range(min(n, made._a.shape[dim])):
        count = made._a.shape[dim] - 1
        made = subtract(aten.narrow(made, dim, 1, count), aten.narrow(made, dim, 0, count))
    return made


declare("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        composite=_diff)


def _ends(y: Tensor, dim: int) -> tuple[Any, Any]:
    count = y._a.shape[wrap_dim(dim, y.ndim)]
    return aten.slice(y, dim, 0, count - 1), aten.slice(y, dim, 1, count)


def _steps(y: Tensor, x: Tensor, dim: int, name: str = "trapezoid") -> Tensor:
    """The widths between sample points, shaped to go with `y`."""
    at = wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        if x._a.shape[0] != y._a.shape[at]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        # The differences of neighbours, taken in the shape that goes with `y`.
        points = aten.view(x, (-1,) + (1,) * (y.ndim - 1 - at))
        left, right = _ends(points, 0)
        return right - left
    return aten.diff(x, 1, at - y.ndim)


def _trapezoid_dx(y: Tensor, dx: Any, dim: int) -> Tensor:
    at = wrap_dim(dim, y.ndim)
    if y._a.shape[at] == 0:
        return aten.zeros(y._a.shape[:at] + y._a.shape[at + 1:], dtype=y.dtype, device=y.device)
    edges = aten.mul__Scalar(aten.select(y, dim, 0) + aten.select(y, dim, -1), 0.5)
    return aten.mul__Scalar(aten.sum(y, dim) - edges, dx)


def _trapezoid_x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    at = wrap_dim(dim, y.ndim)
    if y._a.shape[at] == 0:
        return aten.zeros(y._a.shape[:at] + y._a.shape[at + 1:], dtype=y.dtype, device=y.device)
    widths = _steps(y, x, dim)
    left, right = _ends(y, dim)
    return aten.div__Scalar(aten.sum((left + right) * widths, dim), 2.0)


def _running_trapezoid_dx(y: Tensor, dx: Any, dim: int) -> Tensor:
    left, right = _ends(y, dim)
    return aten.cumsum(aten.mul__Scalar(left + right, dx / 2.0), dim)


def _running_trapezoid_x(y: Tensor, x: Tensor, dim: int) -> Tensor:
    widths = _steps(y, x, dim, "cumulative_trapezoid")
    left, right = _ends(y, dim)
    return aten.div__Scalar(aten.cumsum((left + right) * widths, dim), 2.0)


def _integrals(name: str, by_dx: Any, by_x: Any) -> None:
    declare(f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", composite=by_x, where="n")
    declare(f"{name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", composite=by_dx, where="n")

    @choose(name, where="f")
    def integral(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
        if bool_ in (y.dtype, None if x is None else x.dtype):
            raise RuntimeError(f"{name.replace('trapz', 'trapezoid')}: received a bool input for `x` or `y`, but bool "
                               "is not supported")
        if x is not None:
            if dx is not None:
                raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, "
                                f"dx={type(dx).__name__})")
            return getattr(aten, f"{name}__x")(y, x, dim=dim)
        return getattr(aten, f"{name}__dx")(y, dx=1 if dx is None else dx, dim=dim)

    integral.__name__ = name
    integral.__doc__ = "Integration along a dimension by the trapezoidal rule."


_integrals("trapezoid", _trapezoid_dx, _trapezoid_x)
_integrals("trapz", _trapezoid_dx, _trapezoid_x)
_integrals("cumulative_trapezoid", _running_trapezoid_dx, _running_trapezoid_x)
