"""Comparison, logic, bits, selection and clamping."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.base import on_device
from .._backends.cpu import compare as kernels
from .._backends.cpu import elements
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty, promote_number, result_dtype
from .._dispatch.registry import choose, declare
from .._dtype import DType, bfloat16, float16, uint8
from .._tensor import Tensor
from .._warn import warn_once

_name: str
_ufunc: Any


def _comparison(name: str, kernel: Any) -> None:
    """The result is boolean and has no gradient; in place it is a float, whose gradient is zero."""
    declare(f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", cpu=kernel, promote="compare", inplace=True,
            inplace_grad={"self": lambda grad: aten.zeros_like(grad), "other": lambda grad: aten.zeros_like(grad)},
            inplace_node=f"{name.capitalize()}Backward1", scalar_overload="Scalar", meta="broadcast")


for _name, _ufunc in (("eq", np.equal), ("ne", np.not_equal)):
    _comparison(_name, elements.shared(_ufunc))
for _name, _ufunc in (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
    _comparison(_name, kernels.ordered(_name, elements.shared(_ufunc)))

# -- logic and bits ------------------------------------------------------------------------------------------------

for _name, _ufunc in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
    declare(f"logical_{_name}(Tensor self, Tensor other) -> Tensor", cpu=kernels.logical(elements.shared(_ufunc)),
            promote="ternary", inplace=True, meta="broadcast")
declare("logical_not(Tensor self) -> Tensor", cpu=kernels.logical_not, inplace=True,
        meta="broadcast")
declare("bitwise_not(Tensor self) -> Tensor", cpu=kernels.of_bits("bitwise_not_cpu", np.invert), inplace=True,
        meta="same")


def _bitwise(name: str, kernel: Any, scalar_overload: str) -> None:
    declare(f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", cpu=kernel, promote="binary", inplace=True,
            scalar_overload=scalar_overload, meta="broadcast", where="n")
    declare(f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", where="n", meta="same",
            cpu=lambda value, b: kernel(*reversed(promote_number(b, value))))

    @choose(name)
    def face(input: Any, other: Any, *, out: Any = None) -> Tensor:
        if isinstance(input, Tensor):
            return getattr(aten, f"{name}__Tensor")(input, other, out=out)
        return getattr(aten, f"{name}__Scalar_Tensor")(input, other, out=out)

    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"torch.{name}: on integers and booleans; either operand may be a number."
    choose(f"{name}_", where="m")(lambda input, other: getattr(aten, f"{name}___Tensor")(input, other))


for _name, _ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    _bitwise(f"bitwise_{_name}", kernels.of_bits(f"bitwise_{_name}_cpu", elements.shared(_ufunc)), "Scalar")


def _operator(operator: str, op: str) -> None:
    """`&`, `|` and `^` are ops of their own in PyTorch, which call the one with the longer name."""
    for kind in ("Tensor", "Scalar"):
        declare(f"__{operator}__.{kind}(Tensor self, {kind} other) -> Tensor", where="n",
                composite=lambda self, other: getattr(aten, op)(self, other))
    choose(f"__{operator}__", where="n")(lambda self, other: getattr(
        aten, f"__{operator}____Tensor" if isinstance(other, Tensor) else f"__{operator}____Scalar")(self, other))


for _name in ("and", "or", "xor"):
    _operator(_name, f"bitwise_{_name}")
    _operator(f"i{_name}", f"bitwise_{_name}_")
for _name, _ufunc in (("left", kernels.of_integers("lshift_cpu", kernels.shift_left)),
                      ("right", kernels.of_integers("rshift_cpu", kernels.shift_right))):
    _bitwise(f"bitwise_{_name}_shift", _ufunc, "Tensor_Scalar")
    # Not in terms of the long name, in PyTorch, except that in place there is no kernel of its own here.
    declare(f"__{_name[0]}shift__.Tensor(Tensor self, Tensor other) -> Tensor", cpu=_ufunc, promote="binary",
            scalar_overload="Scalar", meta="broadcast", where="n")
    _operator(f"i{_name[0]}shift", f"bitwise_{_name}_shift_")


def _on_booleans(name: str, op: str) -> None:
    def apply(self: Tensor) -> Tensor:
        if self._a.dtype != np.bool_:
            raise RuntimeError("Expected self.scalar_type() == at::kBool to be true, but got false.")
        return getattr(aten, op)(self)

    declare(f"{name}(Tensor self) -> Tensor", composite=apply)


_on_booleans("_is_all_true", "all")
_on_booleans("_is_any_true", "any")

# -- nearness ------------------------------------------------------------------------------------------------------


def _isclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    if not isinstance(other, Tensor):
        raise TypeError(f"isclose(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{_old_name(self)} did not match {_old_name(other)}")
    for position, (name, value) in enumerate((("rtol", rtol), ("atol", atol)), start=3):
        if isinstance(value, Tensor) and (value.requires_grad or value.ndim):
            raise TypeError(f"isclose(): argument '{name}' (position {position}) must be float, not Tensor")
    if rtol < 0 or atol < 0:
        which, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{which} must be greater than or equal to zero, but got {value:g}")
    close = aten.eq(self, other)
    if equal_nan and (self.dtype.is_floating_point or self.dtype.is_complex):
        close = aten.bitwise_or(close, aten.bitwise_and(aten.isnan(self), aten.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    first, second = self, other
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        # In a floating type: differences of integers can overflow.
        first, second = aten.mul(self, 1.0), aten.mul(other, 1.0)
    allowed = aten.add(aten.abs(aten.mul(second, rtol)), atol)
    distance = aten.abs(aten.sub(first, second))
    near = aten.bitwise_and(aten.isfinite(distance), aten.le(distance, allowed))
    return aten.bitwise_or_(close, near)


def _old_name(tensor: Tensor) -> str:
    return pretty(tensor.dtype)


_TOLERANCES = "float rtol=1e-05, float atol=1e-08, bool equal_nan=False"
declare(f"isclose(Tensor self, Tensor other, {_TOLERANCES}) -> Tensor", composite=_isclose)
declare(f"allclose(Tensor self, Tensor other, {_TOLERANCES}) -> bool",
        composite=lambda self, other, rtol, atol, equal_nan: bool(
            aten.item(aten.all(aten.isclose(self, other, rtol, atol, equal_nan)))))
_equal = on_device(kernels.equal)


def _compared(self: Tensor, other: Tensor) -> bool:
    if self.is_meta:
        raise NotImplementedError("aten::equal: tensors on device 'meta' have no data to compare")
    return bool(_equal(self._a, other._a))


declare("equal(Tensor self, Tensor other) -> bool", composite=_compared)

# -- larger and smaller --------------------------------------------------------------------------------------------


def _extreme_backward(grad: Tensor, self: Tensor, other: Any, loses: Any) -> Any:
    """Ties share the gradient equally."""
    half = grad / 2
    return aten.masked_fill_(aten.where__self(self == other, half, grad), loses(self, other), 0)


def _no_complex(name: str, ufunc: np.ufunc) -> Any:
    shared = elements.shared(ufunc)

    def kernel(a: Any, b: Any, out: Any = None) -> Any:
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return shared(a, b) if out is None else ufunc(a, b, out=out)

    kernel.ufunc = ufunc  # type: ignore[attr-defined]
    return kernel


declare(
    "maximum(Tensor self, Tensor other) -> Tensor", cpu=_no_complex("maximum", np.maximum),
    promote="ternary", meta="broadcast",
    grad={"self": lambda grad, self, other: _extreme_backward(grad, self, other, aten.lt),
          "other": lambda grad, self, other: _extreme_backward(grad, self, other, aten.gt)},
)
declare(
    "minimum(Tensor self, Tensor other) -> Tensor", cpu=_no_complex("minimum", np.minimum),
    promote="ternary", meta="broadcast",
    grad={"self": lambda grad, self, other: _extreme_backward(grad, self, other, aten.gt),
          "other": lambda grad, self, other: _extreme_backward(grad, self, other, aten.lt)},
)


def _kept_by(self: Tensor, other: Any, compare: Any) -> Any:
    return aten.logical_or_(compare(self, other), aten.isnan(other))


def _nan_ignoring(name: str, ufunc: Any, comparison: str) -> None:
    def kept(self: Tensor, other: Any) -> Any:
        return _kept_by(self, other, getattr(aten, comparison))

    declare(
        f"{name}(Tensor self, Tensor other) -> Tensor", cpu=_no_complex(name, ufunc), promote="ternary",
        meta="broadcast",
        grad={"self": lambda grad, self, other: aten.masked_fill(grad, aten.logical_not_(kept(self, other)), 0),
              "other": lambda grad, self, other: aten.masked_fill(grad, kept(self, other), 0)},
    )


_nan_ignoring("fmax", np.fmax, "ge")
_nan_ignoring("fmin", np.fmin, "le")

# -- where ---------------------------------------------------------------------------------------------------------


def _where_number(condition: Tensor, self: Any, other: Any) -> Tensor:
    """`where` with numbers: they do not widen a tensor within its category."""
    if not isinstance(self, Tensor) and not isinstance(other, Tensor):
        kind = result_dtype([], [self, other])
        return aten.where__self(condition, _number(self, kind, condition), _number(other, kind, condition))
    tensor, number = (self, other) if isinstance(self, Tensor) else (other, self)
    kind = tensor.dtype
    if not (kind.is_floating_point and type(number) in (int, float)):
        kind = result_dtype([tensor._a], [number])
    made, tensor = _number(number, kind, condition), aten.to(tensor, kind)
    return aten.where__self(condition, *((made, tensor) if number is self else (tensor, made)))


def _number(value: Any, kind: DType, beside: Tensor) -> Tensor:
    if kind is float16 or kind is bfloat16:
        value = float(kind.np.type(value))  # beside 16-bit floats it may be infinite
    return aten.scalar_tensor(value, dtype=kind, device=beside.device)


declare(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", cpu=kernels.where, where="n",
    grad={"self": lambda grad, condition: aten.where(condition, grad, 0),
          "other": lambda grad, condition: aten.where(condition, 0, grad)},
)
declare("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", composite=_where_number, where="n")
declare("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", composite=_where_number, where="n")
declare("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", composite=_where_number, where="n")
declare("where(Tensor condition) -> Tensor[]",
        composite=lambda condition: aten.unbind(aten.nonzero(condition), 1) if condition.ndim else
        aten.unbind(aten.nonzero(aten.unsqueeze(condition, 0)), 1), where="n")

_ABSENT = object()


@choose("where", where="f")
def where(condition: Tensor, input: Any = _ABSENT, other: Any = _ABSENT, *, out: Any = None) -> Any:
    """`input` where the condition holds and `other` elsewhere; with the condition alone, where it holds."""
    if input is _ABSENT and other is _ABSENT:
        if out is not None:
            raise TypeError("where() received an invalid combination of arguments - got (Tensor, out=Tensor)")
        return aten.where__default(condition)
    if not isinstance(condition, Tensor) or input is _ABSENT or other is _ABSENT:
        kinds = ", ".join(type(one).__name__ for one in (condition, input, other) if one is not _ABSENT)
        raise TypeError(f"where() received an invalid combination of arguments - got ({kinds})")
    if condition.dtype is uint8:
        warn_once("where received a uint8 condition tensor. This behavior is deprecated: it is read as bool; give it a "
                  "bool one.")
    if isinstance(input, Tensor):
        if isinstance(other, Tensor):
            return aten.where__self(condition, input, other, out=out)
        return aten.where__ScalarOther(condition, input, other)
    return (aten.where__ScalarSelf if isinstance(other, Tensor) else aten.where__Scalar)(condition, input, other)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, `other` elsewhere."""
    return where(condition, self, other)


# The method takes its tensor first, the function second.
Tensor.where = where_method  # type: ignore[attr-defined]
