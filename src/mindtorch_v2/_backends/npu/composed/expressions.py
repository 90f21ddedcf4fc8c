"""Calls of elementary operators that return their result, so that formulas read like formulas."""

from __future__ import annotations

from typing import Any, NoReturn

from ...._dispatch.promotion import pretty
from ...._dtype import FROM_NUMPY
from ..arrays import BOOL, NpuArray, like, spread
from ..call import CALLS

__all__ = ["above", "absolute", "at_most", "below", "difference", "exponential", "floating", "logarithm", "plus",
           "product", "quotient", "refuse_dtype", "same", "sigmoid", "sum_of", "tanh", "times"]


def floating(name: str, array: NpuArray) -> None:
    """Refuse an operand without fractions."""
    if array.dtype.kind not in "fV":
        refuse_dtype(name, array)


def refuse_dtype(name: str, array: NpuArray) -> NoReturn:
    raise NotImplementedError(f'"{name}_npu" not implemented for \'{pretty(FROM_NUMPY[array.dtype])}\'')


def sum_of(a: NpuArray, b: NpuArray) -> NpuArray:
    out = spread(a, b)
    CALLS.Add(a, b, 1, out)
    return out


def difference(a: NpuArray, b: NpuArray) -> NpuArray:
    out = spread(a, b)
    CALLS.Sub(a, b, 1, out)
    return out


def product(a: NpuArray, b: NpuArray) -> NpuArray:
    out = spread(a, b)
    CALLS.Mul(a, b, out)
    return out


def quotient(a: NpuArray, b: NpuArray) -> NpuArray:
    out = spread(a, b)
    CALLS.Div(a, b, out)
    return out


def plus(a: NpuArray, number: Any) -> NpuArray:
    out = like(a)
    CALLS.Adds(a, number, 1, out)
    return out


def times(a: NpuArray, number: Any) -> NpuArray:
    out = like(a)
    CALLS.Muls(a, number, out)
    return out


def at_most(a: NpuArray, number: Any) -> NpuArray:
    """Where the elements are not above a number. NaN is in no relation to numbers."""
    return _compared("LeScalar", a, number)


def above(a: NpuArray, number: Any) -> NpuArray:
    return _compared("GtScalar", a, number)


def below(a: NpuArray, number: Any) -> NpuArray:
    return _compared("LtScalar", a, number)


def _compared(name: str, a: NpuArray, number: Any) -> NpuArray:
    out = like(a, BOOL)
    getattr(CALLS, name)(a, number, out)
    return out


def same(a: NpuArray, b: NpuArray) -> NpuArray:
    """Where elements are equal."""
    out = spread(a, b, dtype=BOOL)
    CALLS.EqTensor(a, b, out)
    return out


def absolute(a: NpuArray) -> NpuArray:
    return _applied("Abs", a)


def exponential(a: NpuArray) -> NpuArray:
    return _applied("Exp", a)


def logarithm(a: NpuArray) -> NpuArray:
    return _applied("Log", a)


def sigmoid(a: NpuArray) -> NpuArray:
    return _applied("Sigmoid", a)


def tanh(a: NpuArray) -> NpuArray:
    return _applied("Tanh", a)


def _applied(name: str, a: NpuArray) -> NpuArray:
    out = like(a)
    getattr(CALLS, name)(a, out)
    return out
