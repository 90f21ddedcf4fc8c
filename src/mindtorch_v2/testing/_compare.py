"""`assert_close`: whether two values, or containers of values, are equal up to a tolerance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .._construct import as_tensor
from .._dispatch.namespace import aten
from .._dtype import PROMOTION, dtype
from .._tensor import Tensor

# Relative and absolute tolerance by dtype; other dtypes must match exactly.
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}
Message = str | Callable[[str], str] | None


class Options:
    """What `assert_close` was asked to look at."""

    def __init__(self, allow_subclasses: bool, rtol: float | None, atol: float | None, equal_nan: bool,
                 check_device: bool, check_dtype: bool, check_layout: bool, check_stride: bool) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                             f"{'rtol' if rtol is None else 'atol'}.")
        self.allow_subclasses = allow_subclasses
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def tolerances(self, *kinds: str) -> tuple[float, float]:
        """Those given, else the widest of the dtypes'."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(r for r, _ in found), max(a for _, a in found)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: Message = None) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol * |expected|` everywhere.

    >>> import mindtorch_v2 as torch
    >>> assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    """
    options = Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    _compare(actual, expected, options, msg, "")


def _fail(text: str, place: str, msg: Message) -> None:
    if place:
        text += f"\n\nThe failure occurred for item {place}"
    raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare(actual: Any, expected: Any, options: Options, msg: Message, place: str) -> None:
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place, msg)
        for i in range(len(actual)):
            _compare(actual[i], expected[i], options, msg, f"{place}[{i}]")
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_keys(actual, expected, place, msg)
        for key in sorted(actual, key=str):
            _compare(actual[key], expected[key], options, msg, f"{place}[{key!r}]")
    elif actual is None or expected is None:
        if actual is not expected:
            shown = [value.item() if isinstance(value, Tensor) and value.ndim == 0 else value  # type: ignore[attr-defined]
                     for value in (actual, expected)]
            _fail(f"None mismatch: {shown[0]} is not {shown[1]}", place, msg)
    elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        if bool(actual) is not bool(expected):
            _fail(f"Booleans mismatch: {actual} is not {expected}", place, msg)
    elif isinstance(actual, Number) and isinstance(expected, Number):
        _compare_numbers(actual, expected, options, place, msg)
    elif _comparable(actual, expected, options):
        _compare_tensors(_tensor(actual), _tensor(expected), options, place, msg)
    else:
        raise TypeError(f"No comparison pair was able to handle inputs of type {_type(actual)} and {_type(expected)}.")


def _type(value: Any) -> str:
    return "<class 'torch.Tensor'>" if type(value) is Tensor else str(type(value))


def _comparable(actual: Any, expected: Any, options: Options) -> bool:
    kinds = (Tensor, np.ndarray)
    if not (isinstance(actual, kinds) and isinstance(expected, kinds)):
        return False
    if options.allow_subclasses:
        return isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    return type(actual) is type(expected)


def _tensor(value: Any) -> Tensor:
    return aten.detach(value) if isinstance(value, Tensor) else as_tensor(value)


def _compare_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], place: str, msg: Message) -> None:
    missing = sorted(set(expected) - set(actual), key=str)
    extra = sorted(set(actual) - set(expected), key=str)
    if missing or extra:
        _fail("The keys of the mappings do not match:\n"
              f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {extra}",
              place, msg)


def _python_kind(value: Any) -> str:
    if isinstance(value, (complex, np.complexfloating)):
        return "complex128"
    return "float64" if isinstance(value, (float, np.floating)) else "int64"


def _compare_numbers(actual: Any, expected: Any, options: Options, place: str, msg: Message) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        _fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.", place, msg)
    _scalars(actual, expected, options.tolerances(_python_kind(actual), _python_kind(expected)), options, place, msg)


def _scalars(actual: Any, expected: Any, tolerances: tuple[float, float], options: Options, place: str,
             msg: Message) -> None:
    rtol, atol = tolerances
    difference = abs(actual - expected)
    both_nan = actual != actual and expected != expected
    if actual == expected or (options.equal_nan and both_nan) or (
            np.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        return
    exact = rtol == 0 and atol == 0
    relative = difference / abs(expected) if expected != 0 else float("inf")
    _fail(f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
          f"Absolute difference: {difference}{'' if exact else f' (up to {atol} allowed)'}\n"
          f"Relative difference: {relative}{'' if exact else f' (up to {rtol} allowed)'}", place, msg)


def _compare_tensors(actual: Tensor, expected: Tensor, options: Options, place: str, msg: Message) -> None:
    checks = [("shape", True), ("layout", options.check_layout), ("device", options.check_device),
              ("dtype", options.check_dtype)]
    for name, wanted in checks:
        first, second = getattr(actual, name), getattr(expected, name)
        if wanted and first != second:
            _fail(f"The values for attribute '{name}' do not match: {first} != {second}.", place, msg)
    if options.check_stride and actual.stride() != expected.stride():  # type: ignore[attr-defined]
        _fail("The values for attribute 'stride()' do not match: "
              f"{actual.stride()} != {expected.stride()}.", place, msg)  # type: ignore[attr-defined]
    tolerances = options.tolerances(actual.dtype.name, expected.dtype.name)
    if actual.ndim == 0:
        _scalars(actual.item(), expected.item(), tolerances, options, place, msg)  # type: ignore[attr-defined]
        return
    common: dtype = PROMOTION[actual.dtype, expected.dtype]
    _arrays(aten.to(actual, common)._a, aten.to(expected, common)._a, tolerances, options, place, msg)


def _wide(array: np.ndarray) -> np.ndarray:
    """Integers that cannot wrap around when subtracted, and float32 for the short floating types."""
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _arrays(actual: np.ndarray, expected: np.ndarray, tolerances: tuple[float, float], options: Options, place: str,
            msg: Message) -> None:
    rtol, atol = tolerances
    actual, expected = _wide(actual), _wide(expected)
    difference = np.abs(actual - expected)
    close = actual == expected
    if rtol or atol:
        close |= np.isfinite(difference) & (difference <= atol + rtol * np.abs(expected))
    if options.equal_nan:
        close |= np.isnan(actual) & np.isnan(expected)
    if close.all():
        return
    exact = rtol == 0 and atol == 0
    size = np.abs(expected)
    relative = (difference.astype(np.float32) / size.astype(np.float32) if difference.dtype.kind == "i"
                else difference / size)
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!\n"]
    count = int((~close).sum())
    lines.append(f"Mismatched elements: {count} / {close.size} ({count / close.size:.1%})")
    for name, values, limit in (("absolute", difference, atol), ("relative", relative, rtol)):
        # What is close does not compete for the greatest difference.
        shown = np.where(close, 0, values)
        where = np.unravel_index(int(np.argmax(shown)), shown.shape)
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {shown[where].item()} at index "
                     f"({', '.join(str(int(i)) for i in where)}{',' if len(where) == 1 else ''}){allowed}")
    _fail("\n".join(lines), place, msg)
