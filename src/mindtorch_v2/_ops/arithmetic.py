"""Arithmetic on two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import elements, providers
from .._backends.cpu.arithmetic import (
    ONE,
    check_alpha,
    difference,
    divide_rounded,
    floor_divide,
    fmod,
    power,
    power_scalar,
    remainder,
    scaled_operand,
    subtract,
    sum_in_float32,
)
from .._backends.cpu.inplace import add_into, subtract_into
from .._backends.cpu.wide import HALVES
from .._dispatch.namespace import aten
from .._dispatch.promotion import (
    FLOAT_DTYPES,
    check_integer,
    differing_arrays,
    differing_number,
    product_number,
    promote_number,
    result_dtype,
    scalar_array,
)
from .._dispatch.registry import choose, declare
from .._dispatch.steps import step
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, conj, not_implemented, scaled


def _add_scaled(a: Any, b: Any, alpha: Any) -> Any:
    if providers.native is not None and type(alpha) in (int, float):
        made = providers.native.formula(elements.SUM_OF_SCALED, None, a, b, alpha, 0.0, 0.0)
        if made is not None:
            return made
    if a.dtype in HALVES:
        return sum_in_float32(a, b, alpha)
    return np.add(a, scaled_operand(b, alpha))


def _subtract_scaled(a: Any, b: Any, alpha: Any) -> Any:
    if a.dtype in HALVES:
        check_alpha(b, alpha)
        return sum_in_float32(a, b, -alpha)
    return subtract(a, b if a.dtype == np.bool_ else scaled_operand(b, alpha))  # two booleans are refused


declare(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    cpu=elements.add, cpu_full=_add_scaled, cpu_inplace=add_into, promote="binary", meta="broadcast",
    flops="elementwise",
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: scaled(grad, alpha)},
)
declare(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    cpu=difference, cpu_full=_subtract_scaled, cpu_inplace=subtract_into, promote="difference", meta="broadcast",
    grad={"self": lambda grad: grad, "other": lambda grad, alpha: -scaled(grad, alpha)},
)


def _number_beside(value: Any, array: Any) -> Any:
    """A number as a 0-d array that does not widen the operand beside it."""
    if isinstance(value, bool) or (array.shape and array.dtype in FLOAT_DTYPES and type(value) in (int, float)):
        if type(value) is int:
            check_integer(value)
        return np.array(value)
    return scalar_array(value, result_dtype([array], [value]).np)


@step("aten::sub", "Tensor")
def _subtract_step(a: Any, b: Any, alpha: Any) -> Any:
    if a.dtype is not b.dtype:
        a, b = differing_arrays(a, b)
    made = subtract(a, b) if alpha is ONE else _subtract_scaled(a, b, alpha)
    return made if type(made) is np.ndarray else np.asarray(made)


def _subtract_from(array: Any, other: Any, alpha: Any) -> Any:
    return _subtract_step(other, array, alpha)


declare(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", cpu=_subtract_from, where="n",
    meta="broadcast",
    grad={"self": lambda grad, alpha: -scaled(grad, alpha), "other": lambda grad: grad},
)
declare(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    cpu=lambda a, other, alpha: _subtract_from(a, _number_beside(other, a), alpha), node="RsubBackward1", where="n",
    meta="same", grad={"self": lambda grad, alpha: -scaled(grad, alpha)},
)


@choose("rsub", where="f")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`."""
    if isinstance(other, Tensor):
        return aten.rsub__Tensor(input, other, alpha=alpha)
    return aten.rsub__Scalar(input, other, alpha)


declare(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=elements.multiply, promote="product", inplace=True, meta="broadcast", flops="elementwise",
    grad={"self": lambda grad, other: grad * conj(other), "other": lambda grad, self: grad * conj(self)},
)
# What formulas and composites use for a number beside a tensor; Python's `x * 2` is mul.Tensor, as in PyTorch.
declare(
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    cpu=step("aten::mul", "Tensor")(lambda a, other: elements.multiply(*product_number(a, other))),
    node="MulBackward1", where="n", meta="same",
    flops="elementwise",
    grad={"self": lambda grad, other: aten.mul__Scalar(grad, conj(other))},
)


def _with_number(combine: Any, promote: Any) -> Any:
    """The kernel of a sum or difference with a number."""

    def kernel(a: Any, other: Any, alpha: Any) -> Any:
        first, second = promote(a, other)
        return combine(first, second if alpha is ONE else scaled_operand(second, alpha))

    return kernel


for _name, _combine, _promote in (("add", elements.add, promote_number), ("sub", difference, differing_number)):
    declare(
        f"{_name}.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", where="n", meta="same", inplace=True,
        cpu=_with_number(_combine, _promote),
        node=f"{_name.capitalize()}Backward1", grad={"self": lambda grad: grad},
    )
def _negative_times(grad: Tensor, factor: Any) -> Any:
    """`-grad * factor`, with the factor computed first, as in PyTorch."""
    return -grad * factor


declare(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    cpu=elements.divide, promote="quotient", inplace=True, meta="broadcast",
    grad={
        "self": lambda grad, other: grad / conj(other),
        "other": lambda grad, self, other: _negative_times(grad, conj((self / other) / other)),
    },
)
declare(
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    cpu=lambda a, other: elements.divide(*product_number(a, other)), node="DivBackward1", where="n", promote="float",
    meta="same", grad={"self": lambda grad, other: aten.div__Scalar(grad, conj(other))},
)
declare(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    cpu=divide_rounded, promote="product", inplace=True, node="DivBackward2", meta="broadcast",
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
    "floor_divide(Tensor self, Tensor other) -> Tensor", cpu=floor_divide, promote="product", inplace=True,
    meta="broadcast", node=NOT_IMPLEMENTED,
    grad={"self": not_implemented("floor_divide"), "other": not_implemented("floor_divide")},
)
declare(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor", where="n",
    cpu=remainder, promote="ternary", inplace=True, meta="broadcast", node="RemainderBackward1",
    grad={"self": lambda grad: grad,
          "other": lambda grad, self, other: -grad * aten.div(self, other, rounding_mode="floor")},
)
declare(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor", where="n", inplace=True, meta="same",
    cpu=lambda a, other: remainder(*promote_number(a, other)), grad={"self": lambda grad: grad},
)
declare(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", where="n", meta="same", node=NOT_IMPLEMENTED,
    cpu=lambda value, b: remainder(*reversed(promote_number(b, value))),
    grad={"other": not_implemented("remainder")},
)
declare(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor", where="n",
    cpu=fmod, promote="ternary", inplace=True, meta="broadcast", node="FmodBackward1",
    grad={"self": lambda grad: grad,
          "other": lambda grad, self, other: -grad * aten.div(self, other, rounding_mode="trunc")},
)
declare(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor", where="n", inplace=True, meta="same",
    cpu=lambda a, other: fmod(*promote_number(a, other)), grad={"self": lambda grad: grad},
)


@choose("remainder")
def remainder_of(input: Any, other: Any, *, out: Any = None) -> Any:
    """What is left of `input` after division by `other`, with the sign of `other`; either may be a number."""
    if not isinstance(other, Tensor):
        return aten.remainder__Scalar(input, other, out=out)
    if not isinstance(input, Tensor):
        return aten.remainder__Scalar_Tensor(input, other)
    return aten.remainder__Tensor(input, other, out=out)


@choose("remainder_", where="m")
def remainder_(input: Any, other: Any) -> Any:
    """In-place `remainder`."""
    return (aten.remainder___Tensor if isinstance(other, Tensor) else aten.remainder___Scalar)(input, other)


@choose("fmod")
def fmod_of(input: Any, other: Any, *, out: Any = None) -> Any:
    """What is left of `input` after division by `other`, with the sign of `input`."""
    return (aten.fmod__Tensor if isinstance(other, Tensor) else aten.fmod__Scalar)(input, other, out=out)


@choose("fmod_", where="m")
def fmod_(input: Any, other: Any) -> Any:
    """In-place `fmod`."""
    return (aten.fmod___Tensor if isinstance(other, Tensor) else aten.fmod___Scalar)(input, other)


def _pow_grad_self(grad: Tensor, self: Tensor, exponent: Any) -> Any:
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return aten.zeros_like(self)
        return grad * conj(aten.mul__Scalar(aten.pow(self, exponent - 1), exponent))
    return aten.where(exponent == 0.0, aten.zeros_like(grad), grad * conj(exponent * aten.pow(self, exponent - 1)))


def _not_negative(exponent: Tensor) -> Any:
    if exponent.is_complex():
        return aten.logical_and(aten.imag(exponent) == 0, aten.real(exponent) >= 0)
    return exponent >= 0


def _pow_grad_exponent(grad: Tensor, self: Tensor, exponent: Any, result: Any) -> Any:
    # log(0) is -inf and 0 * -inf is nan; where the base is 0 and the exponent is not negative, the limit is 0.
    undefined = aten.logical_and(self == 0, _not_negative(exponent))
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


def _power_of_number(value: Any, exponent: Any) -> Any:
    if value == 1:
        return np.ones(exponent.shape, result_dtype([exponent], [value]).np)
    return power(*reversed(promote_number(exponent, value)))


def _pow_grad_scalar_base(grad: Tensor, self: Tensor, exponent: Any, result: Any) -> Any:
    log = np.log(complex(self) if exponent.is_complex() else self).item()
    if self == 0:
        # log(0) is -inf; where the exponent is not negative, the limit is 0.
        return grad * aten.where(_not_negative(exponent), 0.0, conj(result * log))
    return grad * conj(result * log)


declare("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", cpu=_power_of_number, node="PowBackward2", where="n",
        meta="same", grad={"exponent": _pow_grad_scalar_base})


@choose("pow")
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input ** exponent`; either may be a number."""
    if not isinstance(exponent, Tensor):
        return aten.pow__Tensor_Scalar(input, exponent, out=out)
    if isinstance(input, Tensor):
        return aten.pow__Tensor_Tensor(input, exponent, out=out)
    return aten.pow__Scalar(input, exponent, out=out)


@choose("pow_", where="m")
def pow_(input: Any, exponent: Any) -> Any:
    """In-place power."""
    form = aten.pow___Tensor_Tensor if isinstance(exponent, Tensor) else aten.pow___Tensor_Scalar
    return form(input, exponent)
