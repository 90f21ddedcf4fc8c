"""Mathematical functions of two or three operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import binary as kernels
from .._backends.cpu import elements, inplace
from .._backends.cpu.pointwise import real_floats
from .._dispatch.namespace import aten
from .._dispatch.promotion import promote_number
from .._dispatch.registry import choose, declare
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, conj, not_implemented


def _atan2_backward(grad: Tensor, self: Tensor, other: Any, needs: Any) -> Any:
    square = self * self + other * other
    share = grad * aten.masked_fill(aten.reciprocal(square), square == 0, 0)
    return (share * other if needs[0] else None), (share * -self if needs[1] else None)


declare("atan2(Tensor self, Tensor other) -> Tensor", cpu=real_floats("atan2_cpu", elements.shared(np.arctan2)),
        promote="ternary_float", inplace=True, meta="broadcast", grad={("self", "other"): _atan2_backward})
declare(
    "hypot(Tensor self, Tensor other) -> Tensor", cpu=real_floats("hypot_cpu", np.hypot), promote="ternary",
    inplace=True, meta="broadcast",
    grad={"self": lambda grad, self, result: grad * (self / result),
          "other": lambda grad, other, result: grad * (other / result)},
)


def _copysign_backward(grad: Tensor, self: Tensor, result: Any) -> Any:
    return grad * aten.masked_fill(result / self, self == 0, 0)


declare(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor", cpu=real_floats("copysign_cpu", np.copysign),
    promote="ternary_float", inplace=True, meta="broadcast", where="n",
    grad={"self": _copysign_backward, "other": lambda grad: aten.zeros_like(grad)},
)
declare(
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor", promote="float", inplace=True, meta="same", where="n",
    cpu=lambda a, other: np.copysign(*promote_number(a, other)), node="CopysignBackward1",
    grad={"self": _copysign_backward},
)


@choose("copysign")
def copysign(input: Tensor, other: Any, *, out: Any = None) -> Tensor:
    """The magnitude of `input` with the sign of `other`."""
    return (aten.copysign__Tensor if isinstance(other, Tensor) else aten.copysign__Scalar)(input, other, out=out)


@choose("copysign_", where="m")
def copysign_(input: Tensor, other: Any) -> Tensor:
    """In-place `copysign`."""
    return (aten.copysign___Tensor if isinstance(other, Tensor) else aten.copysign___Scalar)(input, other)


def _ldexp_backward_other(grad: Tensor, result: Any) -> Any:
    return grad * conj(result) * float(np.log(2.0))


declare(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", cpu=kernels.ldexp, promote="ternary_float", inplace=True,
    meta="broadcast",
    grad={"self": lambda grad, other: grad * conj(aten.pow(2.0, other)), "other": _ldexp_backward_other},
)
def _logaddexp(a: Any, b: Any) -> Any:
    if a.dtype.kind != "c":
        return _real_logaddexp(a, b)
    # As for real numbers, from the larger one, so that the exponential does not overflow.
    swap = b.real > a.real
    large, small = np.where(swap, b, a), np.where(swap, a, b)
    return large + np.log1p(np.exp(small - large))


_real_logaddexp = real_floats("logaddexp_cpu", np.logaddexp)
declare(
    "logaddexp(Tensor self, Tensor other) -> Tensor", cpu=_logaddexp,
    promote="ternary", meta="broadcast",
    grad={"self": lambda grad, self, other: grad / conj(aten.exp(other - self) + 1),
          "other": lambda grad, self, other: grad / conj(aten.exp(self - other) + 1)},
)
declare(
    "logaddexp2(Tensor self, Tensor other) -> Tensor", cpu=real_floats("logaddexp2_cpu", np.logaddexp2),
    promote="ternary", meta="broadcast",
    grad={"self": lambda grad, self, other: grad / (aten.pow(2.0, other - self) + 1),
          "other": lambda grad, self, other: grad / (aten.pow(2.0, self - other) + 1)},
)

# -- x log y -------------------------------------------------------------------------------------------------------


def _xlogy_backward_self(grad: Tensor, self: Tensor, other: Any) -> Any:
    # Where both are 0 the derivative has no limit; 0 is what the product rule of the value there suggests.
    if isinstance(other, Tensor):
        return aten.masked_fill(aten.xlogy(grad, other), aten.bitwise_and(self == 0, aten.le(other, 0)), 0)
    return aten.xlogy(grad, other) if float(other) > 0 else aten.masked_fill(aten.xlogy(grad, other), self == 0, 0)


_XLOGY = real_floats("xlogy_cpu", kernels.xlogy)
declare(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", cpu=_XLOGY,
    promote="ternary_float", inplace=True, meta="broadcast", where="n",
    grad={"self": _xlogy_backward_self, "other": lambda grad, self, other: grad * self / other},
)
declare(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", where="n", node="XlogyBackward1", meta="same",
    promote="float", cpu=lambda value, b: _XLOGY(*reversed(promote_number(b, value))),
    grad={"other": lambda grad, self, other: grad * self / other},
)
declare(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", where="n", node="XlogyBackward2", meta="same",
    promote="float", inplace=True, cpu=lambda a, other: _XLOGY(*promote_number(a, other)),
    grad={"self": _xlogy_backward_self},
)


@choose("xlogy")
def xlogy(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """`input * log(other)`, 0 where the input is 0; either may be a number."""
    if not isinstance(other, Tensor):
        return aten.xlogy__Scalar_Other(input, other, out=out)
    if isinstance(input, Tensor):
        return aten.xlogy__Tensor(input, other, out=out)
    return aten.xlogy__Scalar_Self(input, other, out=out)


@choose("xlogy_")
def xlogy_(input: Tensor, other: Any) -> Tensor:
    """In-place `xlogy`."""
    return (aten.xlogy___Tensor if isinstance(other, Tensor) else aten.xlogy___Scalar_Other)(input, other)

# -- steps and integers --------------------------------------------------------------------------------------------


declare("heaviside(Tensor self, Tensor values) -> Tensor", cpu=kernels.heaviside, inplace=True, meta="broadcast",
        node=NOT_IMPLEMENTED, grad={("self", "values"): not_implemented("heaviside")})
declare("gcd(Tensor self, Tensor other) -> Tensor", cpu=kernels.integers_only("gcd_cpu", np.gcd), promote="ternary",
        inplace=True, meta="broadcast")
declare("lcm(Tensor self, Tensor other) -> Tensor", cpu=kernels.integers_only("lcm_cpu", np.lcm), promote="ternary",
        inplace=True, meta="broadcast")
declare(
    "nextafter(Tensor self, Tensor other) -> Tensor", cpu=real_floats("nextafter_cpu", np.nextafter),
    promote="ternary", inplace=True, meta="broadcast",
    grad={"self": lambda grad, self, other: aten.where(self != other, grad, 0),
          "other": lambda grad: aten.zeros_like(grad)},
)

# -- three operands ------------------------------------------------------------------------------------------------


declare(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", cpu=kernels.lerp_scalar,
    cpu_inplace=inplace.lerp_scalar_into, where="n",
    meta="broadcast",
    grad={"self": lambda grad, weight: grad * conj(1 - weight),
          "end": lambda grad, weight: grad * conj(weight)},
)
declare(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", cpu=kernels.lerp_tensor, inplace=True, where="n",
    node="LerpBackward1", meta="broadcast",
    grad={"self": lambda grad, weight: grad * conj(1 - weight),
          "end": lambda grad, weight: grad * conj(weight),
          "weight": lambda grad, self, end: grad * conj(end - self)},
)


@choose("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = None) -> Tensor:
    """From `input` toward `end` by the fraction `weight`."""
    return (aten.lerp__Tensor if isinstance(weight, Tensor) else aten.lerp__Scalar)(input, end, weight, out=out)


@choose("lerp_", where="m")
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place `lerp`."""
    return (aten.lerp___Tensor if isinstance(weight, Tensor) else aten.lerp___Scalar)(input, end, weight)


declare(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", cpu=kernels.addcmul,
    cpu_inplace=inplace.addcmul_into,
    grad={"self": lambda grad: grad,
          "tensor1": lambda grad, tensor2, value: grad * conj(tensor2 * value),
          "tensor2": lambda grad, tensor1, value: grad * conj(tensor1 * value)},
)
declare(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", cpu=kernels.addcdiv,
    cpu_inplace=inplace.addcdiv_into,
    grad={"self": lambda grad: grad,
          "tensor1": lambda grad, tensor2, value: grad * conj(value / tensor2),
          "tensor2": lambda grad, tensor1, tensor2, value: -grad * conj((value * tensor1) / (tensor2 * tensor2))},
)
