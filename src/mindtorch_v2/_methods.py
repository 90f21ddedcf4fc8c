"""Hangs the ops on Tensor: methods, operators and in-place forms, each compiled when first called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CellType, FunctionType
from typing import Any

import numpy as np

from ._construct import from_numpy
from ._dispatch.explain import OPERANDS
from ._dispatch.namespace import aten, find
from ._dispatch.overriding import faces, is_internal
from ._dispatch.promotion import result_dtype
from ._dispatch.registry import public_names
from ._numpy_names import accept_axis
from ._tensor import Tensor, TensorMeta, wrap_known

# Operator -> op. Reflected forms of commutative ops are the op itself.
OPERATORS = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_",
    "__sub__": "sub", "__isub__": "sub_", "__rsub__": "rsub",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_",
    "__truediv__": "div", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__ifloordiv__": "floor_divide_",
    "__mod__": "remainder", "__imod__": "remainder_",
    "__pow__": "pow", "__ipow__": "pow_",
    "__matmul__": "matmul",
    "__neg__": "neg", "__abs__": "abs", "__invert__": "bitwise_not", "__pos__": "positive",
    "__and__": "__and__", "__rand__": "bitwise_and", "__iand__": "__iand__",
    "__or__": "__or__", "__ror__": "bitwise_or", "__ior__": "__ior__",
    "__xor__": "__xor__", "__rxor__": "bitwise_xor", "__ixor__": "__ixor__",
    "__lshift__": "__lshift__", "__rshift__": "__rshift__", "__ilshift__": "__ilshift__", "__irshift__": "__irshift__",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
}
BINARY = {name for name in OPERATORS if name not in ("__neg__", "__abs__", "__invert__", "__pos__")}
# Operators that say something else than the op of what they cannot use.
ANSWERING = {*BINARY, "__invert__"}


def set_method(name: str, old: Any, function: Any) -> None:
    """Put a method that has just been compiled in the place of its stand-in, if that is still there."""
    if vars(Tensor).get(name) is old:
        setattr(Tensor, name, function)


SET_METHOD: list[Callable[[str, Any, Any], None]] = [set_method]


def unknown(self: Any, other: Any) -> Any:
    """An operator's answer to an operand it does not know: Python asks the other operand, then raises TypeError."""
    return NotImplemented


def unknown_equal(self: Any, other: Any) -> Any:
    """`==` with an array compares element by element."""
    return aten.eq(self, from_numpy(other)) if isinstance(other, np.ndarray) else NotImplemented


def not_inverted(self: Any) -> Any:
    """`~` of numbers that are not integers."""
    raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")


# Not "ne", in PyTorch: `tensor != array` is True.
UNKNOWN: dict[str, Callable[..., Any]] = {"eq": unknown_equal, "bitwise_not": not_inverted}


class OperatorForms:
    """The ops as operators, which answer NotImplemented where the op raises TypeError for its operand."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        form = self.__dict__[name] = operator_form(getattr(aten, name))
        return form


OPERATOR_FORMS = OperatorForms()


def operator_form(function: Callable[..., Any]) -> Callable[..., Any]:
    """An op's function again, the same code with another answer to operands it cannot use.

    A wrapper would cost every `x + y` a call. So an op's function is copied with its constant `operator_` set, and a
    function that chooses among ops is copied with the operator forms in the place of the ops.
    """
    if not isinstance(function, FunctionType):
        return function
    code, closure, names = function.__code__, function.__closure__, function.__globals__
    if "operator_" in code.co_freevars:
        place = code.co_freevars.index("operator_")
        closure = (*closure[:place], CellType(UNKNOWN.get(function.__name__, unknown)), *closure[place + 1:])  # type: ignore[index]
    elif names.get("aten") is aten:
        names = {**names, "aten": OPERATOR_FORMS}
    copied = FunctionType(code, names, function.__name__, function.__defaults__, closure)
    copied.__kwdefaults__, copied.__qualname__, copied.__doc__ = (
        function.__kwdefaults__, function.__qualname__, function.__doc__)
    copied.__module__ = function.__module__
    return copied


def lazy_method(attribute: str, op_name: str) -> Callable[..., Any]:
    """A stand-in that compiles the op at its first call and then replaces itself on the class.

    A program may have put a function of its own there, which keeps this one and calls it.
    """

    def first_call(*args: Any, **kwargs: Any) -> Any:
        if made:
            return made[0](*args, **kwargs)
        function = find(op_name)
        if function is None:
            raise NotImplementedError(f"Tensor.{attribute} needs aten::{op_name}, which this runtime does not have")
        # `aten` has the op itself, also while its public function asks `__torch_function__` first.
        function = operator_form(getattr(aten, op_name)) if attribute in ANSWERING else accept_axis(attribute, function)
        SET_METHOD[0](attribute, first_call, function)
        made.append(function)
        return function(*args, **kwargs)

    made: list[Callable[..., Any]] = []
    first_call.__name__ = first_call.__qualname__ = attribute
    return first_call


def _identity(self: object) -> int:
    """A tensor's hash: programs compare it with `id`."""
    return id(self)


def reflected(name: str) -> Callable[[Tensor, Any], Any]:
    """`number op tensor` for ops whose operands do not commute."""

    def apply(self: Tensor, other: Any) -> Any:
        try:
            return REFLECTED[name](self, other)
        except (TypeError, ValueError):
            if isinstance(other, OPERANDS) and name != "__rmatmul__":
                raise
            return NotImplemented

    apply.__name__ = name
    return apply


REFLECTED: dict[str, Callable[[Tensor, Any], Any]] = {
    "__rtruediv__": lambda self, other: aten.reciprocal(self) * other,
    "__rfloordiv__": lambda self, other: aten.floor_divide(_operand(self, other), self),
    "__rmod__": lambda self, other: aten.remainder(other, self),
    "__rpow__": lambda self, other: aten.pow(other, self),
    "__rmatmul__": lambda self, other: aten.matmul(other, self),
    "__rlshift__": lambda self, other: aten.bitwise_left_shift(other, self),
    "__rrshift__": lambda self, other: aten.bitwise_right_shift(other, self),
}


# Python 2's names, which PyTorch's Tensor has kept.
OLD_NAMES = {"__div__": "__truediv__", "__idiv__": "__itruediv__", "__rdiv__": "__rtruediv__",
             "__nonzero__": "__bool__", "__long__": "__int__"}


def _operand(self: Tensor, number: Any) -> Tensor:
    """A number as a 0-d tensor of the dtype it has beside this tensor."""
    if isinstance(number, Tensor):
        return number
    return wrap_known(np.array(number, result_dtype([self._a], [number]).np))


# Methods and properties of classes that answer for their instances: programs find those of Tensor.
TOLD: set[Any] = set()


def _attribute_of_class(cls: type, name: str) -> Any:
    """What a program finds as `Tensor.mul`: the function that `__torch_function__` gets.

    A class that takes functions over knows them from before any function asks. The runtime and `x.mul` do not come
    through here: they find what is on the class.
    """
    found = type.__getattribute__(cls, name)
    if TOLD and isinstance(found, (FunctionType, property)) and found in TOLD and not is_internal(sys._getframe(1)):
        return getattr(Tensor, name)
    if type(found) is FunctionType and vars(Tensor).get(name) is found and not is_internal(sys._getframe(1)):
        return faces().FACES.method(name, found)
    return found


def attach(late: Iterable[str]) -> None:
    """Put every method of the op table on Tensor, unless it defines it itself; `late` names those not loaded yet."""
    own = set(vars(Tensor))
    for name in (*public_names("m"), *late):
        if name not in own:
            setattr(Tensor, name, lazy_method(name, name))
    for attribute, op_name in OPERATORS.items():
        setattr(Tensor, attribute, lazy_method(attribute, op_name))
    for attribute in REFLECTED:
        setattr(Tensor, attribute, reflected(attribute))
    for old, name in OLD_NAMES.items():
        setattr(Tensor, old, getattr(Tensor, name))
    TensorMeta.__getattribute__ = _attribute_of_class  # type: ignore[assignment, method-assign]
    Tensor.__hash__ = _identity  # type: ignore[method-assign]
