"""`make_tensor`: random contents for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import FLOAT, bool_, dtype, finfo, float32, iinfo, int64

__all__ = ["make_tensor"]


def _bounds(low: Any, high: Any, kind: dtype, lowest: float, above: float, defaults: tuple[float, float]) -> Any:
    """The interval to draw from: the requested one, within the range of the dtype."""
    low = defaults[0] if low is None else low
    high = defaults[1] if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and kind.category >= FLOAT:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
                      "since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning,
                      stacklevel=4)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= above:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {kind} only "
                         f"supports [{lowest}, {above})")
    low, high = min(max(low, lowest), above), min(max(high, lowest), above)
    return (low, high) if kind.category >= FLOAT else (math.ceil(low), math.ceil(high))


def _fill(target: Any, low: float, high: float) -> None:
    if high - low > finfo(target.dtype).max:
        target.uniform_(low / 2, high / 2).mul_(2)
    else:
        target.uniform_(low, high)


def make_tensor(*shape: Any, dtype: Any, device: Any, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Any:
    """A tensor of numbers of [low, high); by default [-9, 9) for floats, [-9, 10) for integers and both booleans."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"{noncontiguous=} and {memory_format=}")
    floating = dtype.category >= FLOAT
    if requires_grad and not floating:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and math.prod(shape) > 1
    if noncontiguous:
        # Every other number of the last dimension is used.
        shape = (*shape[:-1], 2 * shape[-1])
    if floating:
        info = finfo(dtype)
        first, last = _bounds(low, high, dtype, info.min, info.max, (-9, 9))
        # (Numbers of 8 bits are drawn as float32.)
        result = aten.empty(shape, dtype=float32 if dtype.itemsize == 1 else dtype, device=device)
        _fill(aten.view_as_real(result) if dtype.is_complex else result, first, last)
        if result.dtype is not dtype:
            result = aten.to(result, dtype)
    else:
        if dtype is bool_:
            first, last = _bounds(low, high, dtype, 0, 2, (0, 2))
        else:
            # Bounds are 64-bit numbers: one past the largest of those does not exist.
            above = iinfo(dtype).max + (dtype is not int64)
            first, last = _bounds(low, high, dtype, iinfo(dtype).min, above, (-9, 10))
        result = aten.randint(first, last, shape, dtype=dtype, device=device)
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if floating else 1
    if floating:
        result.requires_grad = requires_grad
    return result
