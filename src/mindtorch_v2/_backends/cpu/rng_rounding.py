"""Arithmetic that rounds where compiled kernels round: fused multiply-add and narrowing casts."""

from __future__ import annotations

import numpy as np

__all__ = ["fused_multiply_add", "narrow"]

SPLITTER = float((1 << 27) + 1)
FLOAT32_TIE_MASK = np.int64((1 << 29) - 1)
FLOAT32_TIE = np.int64(1 << 28)


def narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cast to `dtype`; 16-bit floats are reached through float32, as C++ conversions do (two roundings)."""
    if values.dtype == dtype:
        return values
    if dtype.itemsize == 2 and dtype.kind not in "iu" and values.dtype != np.float32:
        values = values.astype(np.float32)
    return values.astype(dtype, copy=False)


def fused_multiply_add(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    """`values * factor + addend` with a single rounding, in the dtype of `values` (float32 or float64)."""
    if factor == 1:
        return values + values.dtype.type(addend)
    factor_typed, addend_typed = values.dtype.type(factor), values.dtype.type(addend)
    if addend_typed == 0:
        # Adding a zero rounds nothing; it only turns -0.0 into 0.0.
        return values * factor_typed + addend_typed
    if factor_typed == 1:
        return values + addend_typed
    if values.dtype == np.float32:
        return _fused_float32(values, float(factor_typed), float(addend_typed))
    return _fused_float64(values, float(factor_typed), float(addend_typed))


def _fused_float32(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    # The product of two float32 is exact in float64, so only the sum rounds: once to float64 and once to float32.
    # That differs from one rounding only if the float64 sum sits exactly between two float32: redo those few.
    product = values.astype(np.float64)
    product *= factor
    total = product + addend
    result = total.astype(np.float32)
    ties = np.flatnonzero((total.view(np.int64) & FLOAT32_TIE_MASK) == FLOAT32_TIE)
    if ties.size:
        result[ties] = _sum_rounded_to_odd(product[ties], np.float64(addend)).astype(np.float32)
    return result


def _fused_float64(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    # Error-free product and sums, the small parts joined with rounding to odd (Boldo and Melquiond, 2008).
    with np.errstate(over="ignore", invalid="ignore"):
        product, product_error = _exact_product(values, factor)
        small, small_error = _exact_sum(product_error, np.float64(addend))
        large, large_error = _exact_sum(product, small)
        result = large + _sum_rounded_to_odd(small_error, large_error)
        finite = np.isfinite(result)
        if not finite.all():
            # Splitting overflows near the top of the range: there two roundings must do.
            result = np.where(finite, result, values * factor + addend)
    return result


def _exact_product(values: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """The rounded product and its rounding error (Dekker)."""
    product = values * factor
    scaled = values * SPLITTER
    values_high = scaled - (scaled - values)
    values_low = values - values_high
    factor_scaled = factor * SPLITTER
    factor_high = factor_scaled - (factor_scaled - factor)
    factor_low = factor - factor_high
    error = values_low * factor_low - (
        ((product - values_high * factor_high) - values_low * factor_high) - values_high * factor_low
    )
    return product, error


def _exact_sum(a: np.ndarray, b: np.ndarray | np.float64) -> tuple[np.ndarray, np.ndarray]:
    """The rounded sum and its rounding error (Knuth)."""
    total = a + b
    b_part = total - a
    error = (a - (total - b_part)) + (b - b_part)
    return total, error


def _sum_rounded_to_odd(a: np.ndarray, b: np.ndarray | np.float64) -> np.ndarray:
    """a + b where an inexact result takes the neighbour whose last bit is one, so that a later rounding is right."""
    total, error = _exact_sum(a, b)
    even = (total.view(np.int64) & np.int64(1)) == 0
    move = (error != 0) & even
    return np.where(move, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
