"""Functions of one operand, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._backends.cpu import activation, elements, special
from .._backends.cpu import pointwise as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, conj, large, not_implemented

LN2, LN10, TWO_OVER_SQRT_PI = math.log(2.0), math.log(10.0), 2.0 / math.sqrt(math.pi)


def _zeros(grad: Tensor) -> Any:
    return aten.zeros_like(grad)


def unary(name: str, cpu: Any, formula: Callable[..., Any] | None = None, *, promote: str | None = "float",
          node: str | None = None, inplace: bool = True, where: str = "fm", meta: str = "same",
          **more: Any) -> None:
    """Declare a function of one tensor; `meta` is "broadcast" where the result's dtype may not be the operand's."""
    declare(f"{name}(Tensor self) -> Tensor", cpu=elements.shared(cpu), promote=promote, inplace=inplace, meta=meta,
            node=node, where=where, grad={"self": formula} if formula is not None else None, **more)


# -- exponentials and roots ----------------------------------------------------------------------------------------

unary("exp", elements.exp, lambda grad, result: grad * conj(result))
unary("exp2", np.exp2, lambda grad, result: grad * (conj(result) * LN2))
unary("expm1", np.expm1, lambda grad, result: grad * (conj(result) + 1))
unary("log", elements.log, lambda grad, self: grad / conj(self))
unary("log2", np.log2, lambda grad, self: grad / (conj(self) * LN2))
unary("log10", kernels.log10, lambda grad, self: grad / (conj(self) * LN10))
unary("log1p", kernels.log1p, lambda grad, self: grad / (conj(self) + 1), node="Log1PBackward0")
unary("sqrt", elements.sqrt, lambda grad, result: grad / aten.mul__Scalar(conj(result), 2))
unary("rsqrt", kernels.rsqrt, lambda grad, result: -0.5 * grad * conj(aten.pow(result, 3)))
unary("reciprocal", kernels.reciprocal, lambda grad, result: -grad * conj(result * result))
declare("square(Tensor self) -> Tensor", composite=lambda self: aten.pow(self, 2))
declare("square_(Tensor self) -> Tensor", composite=lambda self: aten.pow_(self, 2))

# -- signs and rounding --------------------------------------------------------------------------------------------


def _sgn_backward(grad: Tensor, self: Tensor, result: Any) -> Any:
    if self._a.dtype.kind != "c":
        return _zeros(grad)
    size = aten.abs(self)
    # The component along the number itself does not change its direction.
    across = (grad - aten.real(grad * conj(result)) * result) / size
    return aten.where(size == 0.0, 0.0, across)


unary("neg", kernels.negative, lambda grad: -grad, promote=None)
declare("abs(Tensor self) -> Tensor", cpu=kernels.absolute, cpu_inplace=kernels.absolute_inplace, meta="broadcast",
        grad={"self": lambda grad, self: grad * aten.sgn(self)})
unary("sign", kernels.sign, _zeros, promote=None)
unary("sgn", kernels.sgn, _sgn_backward, promote=None)
unary("signbit", kernels.signbit, promote=None, inplace=False, meta="broadcast")
unary("floor", kernels.keeps_integers("floor", np.floor), _zeros, promote=None)
unary("ceil", kernels.keeps_integers("ceil", np.ceil), _zeros, promote=None)
unary("trunc", kernels.keeps_integers("trunc", np.trunc), _zeros, promote=None)
unary("frac", kernels.fraction, lambda grad: grad, promote=None)
unary("round", kernels.keeps_integers("round", np.rint), _zeros, promote=None, where="n")
declare("round.decimals(Tensor self, *, int decimals) -> Tensor", cpu=kernels.round_decimals, inplace=True,
        meta="same", node="RoundBackward1", where="n", grad={"self": _zeros})


@choose("round")
def round(input: Tensor, *, decimals: int | None = None, out: Any = None) -> Tensor:
    """The nearest integer, or the nearest number with the given decimals; halves go to the even one."""
    if decimals is None:
        return aten.round__default(input, out=out)
    return aten.round__decimals(input, decimals=decimals, out=out)


@choose("round_")
def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """In-place `round`."""
    return aten.round___default(input) if decimals is None else aten.round___decimals(input, decimals=decimals)


# -- circular and hyperbolic functions -----------------------------------------------------------------------------


def _sinc_backward(grad: Tensor, self: Tensor) -> Any:
    angle = self * math.pi
    slope = grad * conj((angle * aten.cos(angle) - aten.sin(angle)) / (angle * self))
    return aten.where(self == 0.0, 0.0, slope)


def _acosh_backward(grad: Tensor, self: Tensor) -> Any:
    if self._a.dtype.kind == "c":  # where one root of the product has the wrong sign
        return grad * conj(aten.rsqrt(self - 1) * aten.rsqrt(self + 1))
    return grad * aten.rsqrt(self * self - 1)


unary("sin", np.sin, lambda grad, self: grad * conj(aten.cos(self)))
unary("cos", np.cos, lambda grad, self: grad * -conj(aten.sin(self)))
unary("tan", np.tan, lambda grad, result: grad * conj(aten.pow(result, 2) + 1))
unary("asin", np.arcsin, lambda grad, self: grad * conj(aten.rsqrt(-self * self + 1)))
unary("acos", np.arccos, lambda grad, self: grad * -conj(aten.rsqrt(-self * self + 1)))
unary("atan", np.arctan, lambda grad, self: grad / conj(self * self + 1))
unary("sinh", np.sinh, lambda grad, self: grad * conj(aten.cosh(self)))
unary("cosh", np.cosh, lambda grad, self: grad * conj(aten.sinh(self)))
unary("tanh", elements.tanh, lambda grad, result: aten.tanh_backward(grad, result))
unary("asinh", np.arcsinh, lambda grad, self: grad * conj(aten.rsqrt(aten.pow(self, 2) + 1)),
      inplace_node="AsinhBackward1")
unary("acosh", np.arccosh, _acosh_backward, inplace_node="AcoshBackward1")
unary("atanh", np.arctanh, lambda grad, self: grad / conj(1 - aten.pow(self, 2)), inplace_node="AtanhBackward1")
unary("sinc", kernels.sinc, _sinc_backward)
unary("deg2rad", kernels.degrees_to_radians, lambda grad: grad * (math.pi / 180.0), node="Deg2RadBackward0")
unary("rad2deg", kernels.radians_to_degrees, lambda grad: grad * (180.0 / math.pi), node="Rad2DegBackward0")
declare(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor", cpu=activation.tanh_backward, where="n", meta="same",
    grad={"grad_output": lambda grad, output: aten.tanh_backward(grad, conj(output)),
          # It depends on the conjugate of `output`.
          "output": lambda grad, grad_output, output: conj(grad) * (aten.mul__Scalar(conj(output), -2) * grad_output)},
)

# -- logistic ------------------------------------------------------------------------------------------------------

unary("sigmoid", kernels.sigmoid, lambda grad, result: aten.sigmoid_backward(grad, result))
declare(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", cpu=activation.sigmoid_backward, where="n",
    meta="same",
    grad={"grad_output": lambda grad, output: aten.sigmoid_backward(grad, conj(output)),
          "output": lambda grad, grad_output, output: conj(grad) * (grad_output * (-2 * conj(output) + 1))},
)


def _logit_backward(grad: Tensor, self: Tensor, eps: Any) -> Any:
    if not THREAD.state.grad:
        return aten.logit_backward(grad, self, eps)
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    inside = aten.logical_and(self >= low, self <= high)
    return aten.where(inside, grad / (self * (1.0 - self)), math.nan if eps is None else 0.0)


declare(
    "logit(Tensor self, float? eps=None) -> Tensor", cpu=kernels.logit, promote="float", inplace=True, meta="same",
    grad={"self": _logit_backward},
)
declare(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", cpu=kernels.logit_backward,
    where="n", meta="same", node=NOT_IMPLEMENTED, grad={("grad_output", "self"): not_implemented("logit_backward")},
)

# -- special functions ---------------------------------------------------------------------------------------------

unary("erf", special.erf, lambda grad, self: TWO_OVER_SQRT_PI * aten.exp(-aten.pow(self, 2)) * grad)
unary("erfc", special.erfc, lambda grad, self: -TWO_OVER_SQRT_PI * aten.exp(-aten.pow(self, 2)) * grad)
unary("erfinv", special.erfinv,
      lambda grad, self: aten.exp(aten.pow(aten.erfinv(self), 2)) * (1.0 / TWO_OVER_SQRT_PI) * grad)
unary("lgamma", special.lgamma, lambda grad, self: grad * aten.digamma(self))
unary("digamma", special.digamma, lambda grad, self: grad * aten.polygamma(1, self))
unary("i0", special.i0, lambda grad, self: grad * aten.special_i1(self))


def _i1_backward(grad: Tensor, self: Tensor, result: Any) -> Any:
    far = large(self)
    safe = aten.where(far, self, 1.0)
    return grad * aten.where(far, aten.i0(safe) - result / safe, 0.5)  # the limit of i1(x) / x at 0 is a half


unary("special_i1", special.i1, _i1_backward, inplace=False, where="n")
declare(
    "polygamma(int n, Tensor self) -> Tensor", cpu=special.polygamma, promote="float", meta="same", where="n",
    grad={"self": lambda grad, self, n: grad * aten.polygamma(n + 1, self)},
)
choose("polygamma", where="f")(lambda n, input, *, out=None: aten.polygamma__default(n, input, out=out))


def polygamma_of(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma at each element."""
    return aten.polygamma__default(n, self)


# The method takes its tensor first, the function last.
Tensor.polygamma = polygamma_of  # type: ignore[attr-defined]

# -- tests and replacement -----------------------------------------------------------------------------------------

declare("isnan(Tensor self) -> Tensor", composite=lambda self: aten.ne(self, self))
for _name, _test in (("isinf", np.isinf), ("isfinite", np.isfinite),
                     ("isposinf", kernels.is_infinity(1)), ("isneginf", kernels.is_infinity(-1))):
    unary(_name, _test, promote=None, inplace=False, meta="broadcast")
declare("isreal(Tensor self) -> Tensor", cpu=kernels.is_real, meta="broadcast")
declare(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    cpu=kernels.nan_to_num, inplace=True, meta="same",
    grad={"self": lambda grad, self: grad * aten.isfinite(self)},
)
