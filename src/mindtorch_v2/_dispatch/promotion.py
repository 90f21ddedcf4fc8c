"""Type promotion on arrays: PyTorch's rules, in which Python numbers and 0-d tensors do not widen within a category."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .._backends.base import device_of
from .._backends.cpu.memory import to
from .._backends.cpu.wide import HALVES, wide_number
from .._dtype import (
    BOOL,
    COMPLEX,
    FLOAT,
    FROM_NUMPY,
    INTEGER,
    PROMOTION,
    DefaultDtype,
    bool_,
    cpp_name,
    dtype,
    float32,
    int64,
)

# 0-d operand arrays by (value, type of value, dtype). Zero is left out, because 0.0 and -0.0 are one key.
NUMBER_DTYPES = frozenset(map(np.dtype, (np.float64, np.int64, np.bool_, np.complex128)))
np_array = np.array
SCALARS: dict[tuple[Any, type, np.dtype], Any] = {}
SCALAR_LIMIT = 4096
FLOAT_DTYPES = frozenset(np_dtype for np_dtype, d in FROM_NUMPY.items() if d.category >= FLOAT)
REAL_FLOATS = frozenset(np_dtype for np_dtype in FLOAT_DTYPES if not FROM_NUMPY[np_dtype].is_complex)


# The error for an operand that is neither. Code that knows the op names the argument.
NO_NUMBER = "expected a Tensor or a number"


def number_dtype(value: Any) -> dtype:
    """The dtype that a Python number has by itself. To PyTorch, a Boolean of NumPy is a fraction."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating, np.bool_)):
        return DefaultDtype.value
    if isinstance(value, (complex, np.complexfloating)):
        return DefaultDtype.value.to_complex()
    raise TypeError(f"{NO_NUMBER}, got {type(value).__name__}")


def result_dtype(arrays: list[Any], numbers: list[Any]) -> dtype:
    """PyTorch's result type: tensors with dimensions decide within a category, then 0-d ones, then numbers."""
    dimensional: dtype | None = None
    zero: dtype | None = None
    wrapped: dtype | None = None
    for array in arrays:
        d = FROM_NUMPY[array.dtype]
        if array.shape:
            dimensional = d if dimensional is None else PROMOTION[dimensional, d]
        else:
            zero = d if zero is None else PROMOTION[zero, d]
    for value in numbers:
        d = number_dtype(value)
        wrapped = d if wrapped is None else PROMOTION[wrapped, d]
    result: dtype | None = None
    for candidate in (dimensional, zero, wrapped):
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif candidate.category > result.category:
            result = result.to_complex() if candidate.category == COMPLEX and result.category == FLOAT else candidate
    if result is None:
        raise ValueError("result_dtype of nothing")
    return result


def cast(array: Any, wanted: np.dtype) -> Any:
    """The array in a dtype; the array itself if it has that dtype."""
    if array.dtype == wanted:
        return array
    return array.astype(wanted) if type(array) is np.ndarray else device_of(array).convert(array, wanted)


def operand(array: Any, wanted: np.dtype) -> Any:
    """An operand in the dtype an op computes in; a conversion is a step of its own."""
    if array.dtype == wanted:
        return array
    return to(array, wanted) if type(array) is np.ndarray else device_of(array).convert(array, wanted)


def promote_arrays(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands in their common dtype."""
    if not a.shape and b.shape and FROM_NUMPY[a.dtype].category <= FROM_NUMPY[b.dtype].category:
        return operand(a, b.dtype), b  # a single number decides nothing
    wanted = result_dtype([a, b], []).np
    return operand(a, wanted), operand(b, wanted)


def promote_list(arrays: list[Any]) -> list[Any]:
    """Any number of operands in their common dtype."""
    first = arrays[0].dtype if arrays else None
    if all(a.dtype is first for a in arrays):
        return arrays
    wanted = result_dtype(arrays, []).np
    return [operand(a, wanted) for a in arrays]


def check_integer(value: int) -> None:
    """Raise an error for a Python integer that does not fit in 64 bits."""
    if value >= 1 << 64:
        raise OverflowError("int too big to convert")
    if value < -(1 << 63):
        raise OverflowError("can't convert negative int to unsigned")


C_NAMES = {"float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
           "int32": "int", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


def no_room(wanted: np.dtype) -> RuntimeError:
    """The error for a number that a dtype cannot hold."""
    return RuntimeError(f"value cannot be converted to type {C_NAMES.get(wanted.name, wanted.name + '_t')} without "
                        "overflow")


def scalar_array(value: Any, wanted: np.dtype) -> np.ndarray:
    """A 0-d array of a number in a dtype, cached. Integers wrap around, as in a C cast."""
    key = (value, type(value), wanted)
    found = SCALARS.get(key)
    if found is None:
        if hasattr(value, "_a"):
            return scalar_array(value.item(), wanted)  # a tensor is no key: its number may change
        if type(value) is int:
            check_integer(value)
        elif value is None:
            raise TypeError(f"{NO_NUMBER}, got NoneType")
        elif isinstance(value, complex) and value.imag and wanted.kind not in "cb":
            raise no_room(wanted)
        if wanted.kind in "iu" and isinstance(value, (int, np.integer)):
            bits = wanted.itemsize * 8
            found = np.array(int(value) & ((1 << bits) - 1), f"u{wanted.itemsize}").view(wanted)
        else:
            found = np.array(value).astype(wanted)
        if value != 0 and len(SCALARS) < SCALAR_LIMIT:
            SCALARS[key] = found
    return found


def _of_category(number: dtype, own: dtype) -> dtype:
    """The dtype of a tensor and a number of a higher category: a number never makes a float's parts wider."""
    return own.to_complex() if own.category == FLOAT else number


def stored_scalar(value: Any, wanted: np.dtype) -> np.ndarray:
    """`scalar_array` of a number to store; a number that the dtype cannot hold is an error, as in PyTorch."""
    if type(value) is int:
        check_integer(value)
    if isinstance(value, complex):
        held = wanted.kind in "cb" or not value.imag
    else:
        held = (0 if wanted.kind == "u" else -128) <= value <= 127 or _holds(value, wanted)
    if not held:
        raise no_room(wanted)
    return scalar_array(value, wanted)


def _holds(value: Any, wanted: np.dtype) -> bool:
    """Whether a number is in the range of a dtype; an integer may be negative for an unsigned type, down to minus
    the largest."""
    if wanted == np.bool_:
        return True
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        least = limits.min or (-limits.max if isinstance(value, int) else 0)
        return bool(least <= value <= limits.max)
    return bool(not np.isfinite(value) or abs(value) <= ml_dtypes.finfo(wanted).max)


def number_operand(value: Any, wanted: np.dtype) -> Any:
    """A number as an operand: a 0-d array of its own type, converted if the op computes in another."""
    own = np_array(value)
    if own.dtype not in NUMBER_DTYPES:
        return scalar_array(value, wanted)  # an integer beyond 64 bits
    return own if own.dtype == wanted else to(own, wanted)


def promote_number(a: Any, value: Any) -> tuple[Any, Any]:
    """A tensor operand and a Python number in their common dtype, as operands."""
    own = FROM_NUMPY[a.dtype]
    number = number_dtype(value)
    wanted = own.np
    if number.category > own.category:
        wanted = _of_category(number, own).np
    return operand(a, wanted), number_operand(value, wanted)


BOOL_DIFFERENCE = ("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
                   "mask, use the `~` or `logical_not()` operator instead.")


def differing_arrays(a: Any, b: Any) -> tuple[Any, Any]:
    """`promote_arrays` for a difference, which booleans cannot have."""
    if a.dtype == np.bool_ or b.dtype == np.bool_:
        raise RuntimeError(BOOL_DIFFERENCE)
    return promote_arrays(a, b)


def differing_number(a: Any, value: Any) -> tuple[Any, Any]:
    """`promote_number` for a difference, which booleans cannot have; the kernel refuses two of them."""
    if (a.dtype == np.bool_) is not isinstance(value, bool):
        raise RuntimeError(BOOL_DIFFERENCE)
    return promote_number(a, value)


def number_array(value: Any) -> np.ndarray:
    """The 0-d array for a Python number in place of a tensor; TypeError for anything else."""
    if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        raise TypeError(type(value).__name__)
    if type(value) is int:
        return scalar_array(value, np.dtype(np.int64)).copy()
    return np.array(value, number_dtype(value).np)


def to_float(a: Any) -> Any:
    """Integers and booleans as the default floating type; other operands unchanged."""
    return a if a.dtype in FLOAT_DTYPES else operand(a, DefaultDtype.value.np)


def float_pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands in a common floating type, for true division and similar ops."""
    wanted = result_dtype([a, b], [])
    if wanted.category < FLOAT:
        wanted = DefaultDtype.value
    return operand(a, wanted.np), operand(b, wanted.np)


def float_number(a: Any, value: Any) -> tuple[Any, Any]:
    """A tensor operand and a number in a common floating type, as operands."""
    if a.dtype in FLOAT_DTYPES or isinstance(value, (float, complex, np.floating, np.complexfloating)):
        return promote_number(a, value)
    if not isinstance(value, (int, np.integer, np.bool_)):
        raise TypeError(f"a number is due, not {type(value).__name__}")
    return operand(a, DefaultDtype.value.np), number_operand(value, DefaultDtype.value.np)


def _with_digits(promote: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """`promote` for a product or quotient, in which a number with 16-bit floats keeps its digits."""

    def operands(a: Any, b: Any) -> tuple[Any, Any]:
        first, second = promote(a, b)
        if (first.dtype not in HALVES or second.shape
                or type(first) is not np.ndarray or type(second) is not np.ndarray):
            return first, second
        return first, wide_number(b)

    return operands


product_arrays, product_number = _with_digits(promote_arrays), _with_digits(promote_number)
quotient_arrays, quotient_number = _with_digits(float_pair), _with_digits(float_number)


def _number_plans() -> dict[tuple[type, np.dtype], Any]:
    """The function that converts a number to an operand, if its type and the tensor's dtype decide: floating
    tensors."""
    plans: dict[tuple[type, np.dtype], Any] = {}

    def convert(wanted: np.dtype) -> Any:
        return lambda value: to(np_array(value), wanted)

    for wanted in FLOAT_DTYPES:
        plans[float, wanted] = np_array if wanted == np.float64 else convert(wanted)
        plans[int, wanted] = lambda value, wanted=wanted: number_operand(value, wanted)
        if wanted.kind == "c":
            plans[complex, wanted] = np_array if wanted == np.complex128 else convert(wanted)
    return plans


def check_cast(result: np.dtype, wanted: np.dtype) -> None:
    """Raise PyTorch's error for storing a result into a lesser category."""
    source, target = FROM_NUMPY[result], FROM_NUMPY[wanted]
    allowed = (
        source.category <= target.category
        or (source.category == INTEGER and target.category == INTEGER)
    ) and not (source.category != BOOL and target.category == BOOL)
    if not allowed:
        raise RuntimeError(
            f"result type {pretty(source)} can't be cast to the desired output type {pretty(target)}"
        )


def pretty(d: dtype) -> str:
    """PyTorch's C++ name of a dtype, as its error messages use it."""
    return cpp_name(d.name)


FLOAT32 = float32.np
NUMBER_PLANS = _number_plans()
WIDE_PLANS = {key: plan for key, plan in NUMBER_PLANS.items() if key[1] not in HALVES}
