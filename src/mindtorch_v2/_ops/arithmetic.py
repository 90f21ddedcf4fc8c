"""Arithmetic on two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu.arithmetic import (
    divide_rounded,
    floor_divide,
    fmod,
    power,
    power_scalar,
    remainder,
    subtract,
)
from .._backends.cpu.inplace import add_into, subtract_into
from .._dispatch.namespace import aten
from .._dispatch.promotion import FLOAT_DTYPES, promote_number
from .._dispatch.registry import choose, declare
from .._tensor import Tensor, wrap_known
from .formulas import conj, not_implemented, scaled


def _add_scaled(a: Any, b: Any, alpha: Any) -> Any:
    return np.add(a, np.multiply(b, np.asarray(alpha, b.dtype)))


def _subtract_scaled(a: Any, b: Any, alpha: Any) -> Any:
    return np.subtract(a, np.multiply(b, np.asarray(alpha, b.dtype)))


declare(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    cpu=np.add, cpu_full=_add_scaled, cpu_inplace=add_into, promote="binary", meta="broadcast", flops="elementwise",
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: scaled(grad, alpha)},
)
declare(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    cpu=subtract, cpu_full=_subtract_scaled, cpu_inplace=subtract_into, promote="binary", meta="broadcast",
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: -scaled(grad, alpha)},
)
def _as_tensor(value: Any, beside: Tensor) -> Tensor:
    """A number as a 0-d tensor that does not widen the tensor beside it."""
    array = beside._a
    if array.shape and array.dtype in FLOAT_DTYPES and isinstance(value, float):
        return wrap_known(np.array(value))
    return wrap_known(np.array(value, aten.result_type(beside, value).np))


declare(
    "rsub.Scalar(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    composite=lambda input, other, alpha: aten.sub(
        other if isinstance(other, Tensor) else _as_tensor(other, input), input, alpha=alpha),
    where="f",
)
declare(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=np.multiply, promote="binary", inplace=True, meta="broadcast", flops="elementwise",
    grad={"self": lambda grad, other: grad * conj(other), "other": lambda grad, self: grad * conj(self)},
)
# What formulas use for a number that multiplies a tensor; Python's `x * 2` is mul.Tensor, as in PyTorch.
declare(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    cpu=lambda a, other: np.multiply(*promote_number(a, other)), node="MulBackward1", where="n", meta="same",
    flops="elementwise",
    grad={"self": lambda grad, other: aten.mul__Scalar(grad, conj(other))},
)
declare(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=np.true_divide, promote="binary_float", inplace=True, meta="broadcast",
    grad={
        "self": lambda grad, other: grad / conj(other),
        "other": lambda grad, self, other: -grad * conj((self / other) / other),
    },
)
declare(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    cpu=lambda a, other: np.true_divide(*promote_number(a, other)), node="DivBackward1", where="n", promote="float",
    meta="same", grad={"self": lambda grad, other: aten.div__Scalar(grad, conj(other))},
)
declare(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    cpu=divide_rounded, promote="binary", inplace=True, node="DivBackward2", meta="broadcast",
    grad={"self": lambda grad, other, rounding_mode: aten.zeros_like(grad),
          "other": lambda grad, other, rounding_mode: aten.zeros_like(grad)},
)


@choose("div")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Division; `rounding_mode` "trunc" or "floor" rounds the quotient."""
    if rounding_mode is None:
        return aten.div__Tensor(input, other, out=out)
    return aten.div__Tensor_mode(input, other, rounding_mode=rounding_mode, out=out)


@choose("div_", where="m")
def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """In-place division."""
    if rounding_mode is None:
        return aten.div___Tensor(input, other)
    return aten.div___Tensor_mode(input, other, rounding_mode=rounding_mode)


declare(
    "floor_divide(Tensor self, Tensor other) -> Tensor", cpu=floor_divide, promote="binary", inplace=True,
    meta="broadcast", node="NotImplemented",
    grad={"self": not_implemented("floor_divide"), "other": not_implemented("floor_divide")},
)
declare(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=remainder, promote="binary", inplace=True, scalar_overload="Scalar", meta="broadcast",
    grad={"self": lambda grad: grad,
          "other": lambda grad, self, other: -grad * aten.div(self, other, rounding_mode="floor")},
)
declare(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=fmod, promote="binary", inplace=True, scalar_overload="Scalar", meta="broadcast",
    grad={"self": lambda grad: grad,
          "other": lambda grad, self, other: -grad * aten.div(self, other, rounding_mode="trunc")},
)


def _pow_grad_self(grad: Any, self: Any, exponent: Any) -> Any:
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return aten.zeros_like(self)
        return grad * conj(aten.mul__Scalar(aten.pow(self, exponent - 1), exponent))
    return aten.where(exponent == 0.0, aten.zeros_like(grad), grad * conj(exponent * aten.pow(self, exponent - 1)))


def _pow_grad_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    # log(0) is -inf and 0 * -inf is nan; where the base is 0 and the exponent is not negative, the limit is 0.
    undefined = aten.logical_and(self == 0, exponent >= 0)
    return grad * aten.where(undefined, aten.zeros_like(result), conj(result * aten.log(self)))


declare(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    cpu=power_scalar, inplace=True, meta="same",
    grad={"self": _pow_grad_self},
)
declare(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    cpu=power, promote="binary", inplace=True, node="PowBackward1", meta="broadcast",
    grad={"self": _pow_grad_self, "exponent": _pow_grad_exponent},
)
declare(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    composite=lambda self, exponent: aten.pow__Tensor_Tensor(
        aten.scalar_tensor(self, dtype=aten.result_type(exponent, self)), exponent),
)


@choose("pow")
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input ** exponent`; either may be a number."""
    if not isinstance(exponent, Tensor):
        return aten.pow__Tensor_Scalar(input, exponent, out=out)
    if isinstance(input, Tensor):
        return aten.pow__Tensor_Tensor(input, exponent, out=out)
    return aten.pow__Scalar(input, exponent)


@choose("pow_", where="m")
def pow_(input: Any, exponent: Any) -> Any:
    """In-place power."""
    form = aten.pow___Tensor_Tensor if isinstance(exponent, Tensor) else aten.pow___Tensor_Scalar
    return form(input, exponent)
