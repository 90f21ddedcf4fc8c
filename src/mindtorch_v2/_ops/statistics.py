"""Statistics: variance, norms, medians, modes, quantiles, log-sum-exp."""

from __future__ import annotations

import math
from typing import Any

from .._backends.cpu import statistics as kernels
from .._backends.cpu.reduce import extent
from .._backends.sparse import SparseArray
from .._dispatch.dispatcher import write_results
from .._dispatch.namespace import aten, find
from .._dispatch.registry import choose, declare
from .._dtype import DType, float32, float64, int64
from .._shape import wrap_dim, wrap_dims
from .._tensor import Tensor, wrap_known
from .formulas import conj, spread
from .reduce import NOT_GIVEN, evenly, kept, refuse_out, refuse_several, selected
from .return_types import named

# -- variance ------------------------------------------------------------------------------------------------------


def _var_backward(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    shape = self._a.shape
    dims = wrap_dims(dim, len(shape))
    freedom = extent(shape, dims) - (1 if correction is None else correction)
    if dim is None and not keepdim:
        average = aten.mean__default(self)
    else:
        grad = kept(grad, shape, dims, keepdim)
        average = aten.mean__dim(self, dims, True)
    if freedom <= 0 and dim is None and not keepdim:
        return grad * aten.where(self == average, math.nan, math.inf)
    return grad * (2.0 / freedom if freedom else math.inf) * (self - average)


def _std_backward(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool, result: Any) -> Any:
    # At a deviation of 0 the slope of the square root is infinite; PyTorch takes 0 there.
    grad = aten.masked_fill_(grad / (result * 2), aten.eq(result, 0), 0)
    return _var_backward(grad, self, dim, correction, keepdim)


def _mean_part(grad: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Any:
    shape = self._a.shape
    dims = wrap_dims(dim, len(shape))
    return spread(grad, shape, dims, keepdim) / extent(shape, dims)


def _var_mean_backward(grads: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _var_backward(grads[0], self, dim, correction, keepdim) + _mean_part(grads[1], self, dim, keepdim)


def _std_mean_backward(grads: Any, self: Tensor, dim: Any, correction: Any, keepdim: bool, result0: Tensor) -> Any:
    return (_std_backward(grads[0], self, dim, correction, keepdim, result0)
            + _mean_part(grads[1], self, dim, keepdim))


def _moments(name: str, returns: str, kernel: Any, backward: Any, where: str) -> None:
    """One of var, std, var_mean, std_mean in all its call forms; the others lead to the one with `correction`."""
    declare(f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
            f"{returns}", cpu=kernel, where="n", grad={"self": backward})

    def full(*args: Any, **options: Any) -> Any:
        return getattr(aten, f"{name}__correction")(*args, **options)

    declare(f"{name}(Tensor self, bool unbiased=True) -> {returns}", where="n",
            composite=lambda self, unbiased: full(self, None, correction=int(unbiased)))
    declare(f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {returns}", where="n",
            composite=lambda self, dim, unbiased, keepdim: full(self, dim, correction=int(unbiased), keepdim=keepdim))

    @choose(name, where=where)
    def moment(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
               correction: Any = None, out: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
        dim = axis if dim is None else dim
        keepdim = keepdim or keepdims
        if isinstance(dim, bool):
            if unbiased is not None:
                raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, bool, "
                                f"{type(unbiased).__name__})")
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(f"{name}() received an invalid combination of arguments - got both 'unbiased' and "
                            "'correction'")
        if unbiased is None or out is not None:
            correction = int(unbiased) if unbiased is not None else correction
            return full(input, dim, correction=correction, keepdim=keepdim, **({} if out is None else {"out": out}))
        if dim is None and not keepdim:
            return getattr(aten, f"{name}__default")(input, unbiased)
        return getattr(aten, f"{name}__dim")(input, dim, unbiased, keepdim)

    moment.__name__ = name
    moment.__doc__ = f"{name} over all elements or over dimensions, with `count - correction` as divisor."


_moments("var", "Tensor", kernels.moments("var", root=False, with_mean=False), _var_backward, "fm")
_moments("std", "Tensor", kernels.moments("std", root=True, with_mean=False), _std_backward, "fm")
_moments("var_mean", "(Tensor, Tensor)", kernels.moments("var_mean", root=False, with_mean=True),
         _var_mean_backward, "f")
_moments("std_mean", "(Tensor, Tensor)", kernels.moments("std_mean", root=True, with_mean=True),
         _std_mean_backward, "f")

# -- norms ---------------------------------------------------------------------------------------------------------


def _norm_slope(grad: Tensor, self: Tensor, order: float, norm: Any, dims: tuple[int, ...]) -> Any:
    """The gradient of a norm; `grad` and `norm` broadcast against `self`."""
    if order == 0:
        return aten.zeros_like(self)
    if order == 1:
        return aten.sgn(self) * grad
    if order == 2:
        return aten.masked_fill_(self / norm, aten.eq(norm, 0), 0) * grad
    if math.isinf(order):
        size = aten.abs(self)
        mask = aten.logical_or(aten.eq(size, norm), aten.isnan(size))
        return aten.sgn(self) * (grad / aten.sum__dim_IntList(mask, dims, True) * mask)
    if order < 1:
        slope = aten.masked_fill(aten.pow(aten.abs(self), order - 1), aten.eq(self, 0), 0)
        return aten.sgn(self) * slope * grad * aten.pow(norm, 1 - order)
    scale = aten.masked_fill_(grad / aten.pow(norm, order - 1), aten.eq(norm, 0), 0)
    if order < 2:
        return aten.sgn(self) * aten.pow(aten.abs(self), order - 1) * scale
    return self * aten.pow(aten.abs(self), order - 2) * scale


def _vector_norm_backward(grad: Tensor, self: Tensor, ord: Any, dim: Any, keepdim: bool, result: Tensor) -> Any:
    shape = self._a.shape
    dims = wrap_dims(dim, len(shape))
    if dim is not None:
        grad, result = kept(grad, shape, dims, keepdim), kept(result, shape, dims, keepdim)
    return _norm_slope(grad, self, float(ord), result, dims)


declare(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor", cpu=kernels.vector_norm, where="n", grad={"self": _vector_norm_backward},
)


declare(
    "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", where="n",
    cpu=lambda a, p, dim, keepdim: aten.linalg_vector_norm(wrap_known(a), 2 if p is None else p, dim, keepdim)._a,
    node="NormBackward1",
    grad={"self": lambda grad, self, p, dim, keepdim, result: _vector_norm_backward(
        grad, self, 2 if p is None else p, dim, keepdim, result)},
)


@choose("norm")
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
         dtype: DType | None = None) -> Tensor:
    """The p-norm of the elements, or the nuclear norm of a matrix."""
    if isinstance(p, str):
        if p == "nuc":
            if find("linalg_matrix_norm") is None:
                raise NotImplementedError("norm(): p='nuc' needs aten::linalg_matrix_norm, which this runtime does "
                                          "not have")
            dims = tuple(range(input.ndim)) if dim is None else dim
            made = aten.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype)
            return made if out is None else write_results("norm", out, made)
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        if isinstance(dim, (list, tuple)) and len(dim) > 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
        p = 2
    if isinstance(input._a, SparseArray):
        if dtype is not None:
            input = aten.to(input, dtype)
        dims = () if dim is None else (dim,) if isinstance(dim, int) else dim
        return aten.norm__ScalarOpt_dim(input, p, dims, keepdim, out=out)
    return aten.linalg_vector_norm(input, 2 if p is None else p, dim, keepdim, dtype=dtype, out=out)


def _dist_backward(grad: Tensor, self: Tensor, other: Any, p: Any, result: Tensor) -> Any:
    difference = self - other
    return _norm_slope(grad, difference, float(p), result, tuple(range(difference.ndim)))


declare(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", cpu=kernels.dist, promote="ternary",
    grad={"self": _dist_backward,
          "other": lambda grad, self, other, p, result: _dist_backward(-grad, self, other, p, result)},
)


def _logsumexp_backward(grad: Tensor, self: Tensor, dim: Any, keepdim: bool, result: Any) -> Any:
    shape = self._a.shape
    dims = wrap_dims(dim, len(shape))
    grad, result = kept(grad, shape, dims, keepdim), kept(result, shape, dims, keepdim)
    return grad * conj(aten.exp(self - result))


declare(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", cpu=kernels.logsumexp, promote="float",
    grad={"self": _logsumexp_backward},
)

# -- medians and modes ---------------------------------------------------------------------------------------------


def _medians(name: str, skip_nan: bool) -> None:
    result = named(name, ("values", "indices"))
    declare(f"{name}(Tensor self) -> Tensor", cpu=kernels.median_all(name, skip_nan=skip_nan), where="n",
            grad={"self": evenly})
    declare(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            cpu=kernels.median_dim(name, skip_nan=skip_nan), where="n", node=f"{name.capitalize()}Backward1",
            differentiable=(0,), grad={"self": selected})

    @choose(name)
    def median(input: Tensor, dim: Any = NOT_GIVEN, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is NOT_GIVEN and not keepdim:
            refuse_out(name, out)
            return getattr(aten, f"{name}__default")(input)
        if not isinstance(dim, str):
            refuse_several(name, dim)
        return (result if out is None else result.written)(getattr(aten, f"{name}__dim")(input, dim, keepdim, out=out))

    median.__name__ = name
    median.__doc__ = "The lower median of all elements, or along a dimension with its position."


_medians("median", False)
_medians("nanmedian", True)

MODE = named("mode", ("values", "indices"))
KTHVALUE = named("kthvalue", ("values", "indices"))
declare("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", cpu=kernels.mode,
        where="n", differentiable=(0,), grad={"self": selected})
declare("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        cpu=kernels.kthvalue, where="n", differentiable=(0,), grad={"self": selected})


@choose("mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent value along a dimension."""
    return (MODE if out is None else MODE.written)(aten.mode__default(input, dim, keepdim, out=out))


@choose("kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th smallest element along a dimension."""
    return (KTHVALUE if out is None else KTHVALUE.written)(aten.kthvalue__default(input, k, dim, keepdim, out=out))


# -- quantiles -----------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self._a.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
                           f"got {interpolation}")
    if not aten.item(aten.all(aten.logical_and(aten.ge(q, 0), aten.le(q, 1)))):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _lines(self: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    """The sorted elements along a new last dimension; the dimension they came from is gone or has extent 1."""
    if dim is None:
        line = aten.sort(aten.flatten(self))[0]
        return aten.view(line, ((1,) * self.ndim if keepdim else ()) + (-1,))
    at = wrap_dim(dim, self.ndim)
    if not self.ndim or at == self.ndim - 1:
        lines = aten.sort(self if self.ndim else aten.view(self, (1,)))[0]
    else:
        lines = aten.sort(aten.transpose(aten.unsqueeze(self, -1), at, -1))[0]
    shape = self._a.shape
    return aten.view(lines, (*shape[:at], *((1,) if keepdim and shape else ()), *shape[at + 1:], -1))


def _quantile(name: str, self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    _check_quantile(name, self, q, interpolation)
    lines = _lines(self, dim, keepdim)
    last = lines._a.shape[-1] - 1
    missing = aten.isnan(lines)
    flat_q = q if q.ndim else aten.reshape(q, (1,))
    if name == "nanquantile":
        ranks = flat_q * (aten.sum(aten.logical_not(missing), -1, True) - 1)
        ranks = aten.masked_fill(ranks, aten.lt(ranks, 0), 0)
    else:
        ranks = aten.masked_fill(aten.mul__Scalar(flat_q, last), aten.any(missing, -1, True), last)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": aten.floor, "higher": aten.ceil, "nearest": aten.round}[interpolation](ranks)
    below = aten.to(ranks, int64)
    made = aten.gather(lines, -1, below)
    if interpolation in ("linear", "midpoint"):
        weight = aten.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
        made = aten.lerp_(made, aten.gather(lines, -1, aten.to(aten.ceil(ranks), int64)), weight)
    if q.ndim:
        made = aten.transpose_(aten.unsqueeze_(made, 0), 0, -1)
    return aten.squeeze_(made, -1)


def _quantiles(name: str) -> None:
    options = 'int? dim=None, bool keepdim=False, *, str interpolation="linear"'
    declare(f"{name}(Tensor self, Tensor q, {options}) -> Tensor", where="n",
            composite=lambda *args: _quantile(name, *args))
    declare(f"{name}.scalar(Tensor self, float q, {options}) -> Tensor", where="n",
            composite=lambda self, q, *args: _quantile(name, self, _level(name, self, q), *args))

    @choose(name)
    def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
                 interpolation: str = "linear", out: Any = None) -> Tensor:
        form = getattr(aten, f"{name}__default" if isinstance(q, Tensor) else f"{name}__scalar")
        made = form(input, q, dim, keepdim, interpolation=interpolation)
        return made if out is None else write_results(name, out, made)

    quantile.__name__ = name
    quantile.__doc__ = "The q-th quantiles of the elements."


def _level(name: str, self: Tensor, q: float) -> Tensor:
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    return aten.scalar_tensor(q, dtype=self.dtype, device=self.device)


_quantiles("quantile")
_quantiles("nanquantile")
