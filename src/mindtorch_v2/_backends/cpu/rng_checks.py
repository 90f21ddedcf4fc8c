"""What the random draws accept: dtypes, bounds and probabilities, refused in PyTorch's words."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

__all__ = [
    "BFLOAT16", "COMPLEX", "FLOATING", "INTEGRAL", "check_full_range", "check_integer_bounds", "check_multinomial",
    "check_permutation", "check_uniform_bounds", "info", "require",
]  # fmt: skip

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class DtypeInfo(NamedTuple):
    """PyTorch's name of a dtype in messages, and how many consecutive integers it holds (2**digits)."""

    scalar_name: str
    c_name: str
    digits: int


DTYPES: dict[np.dtype, DtypeInfo] = {
    np.dtype(np.bool_): DtypeInfo("Bool", "bool", 1),
    np.dtype(np.uint8): DtypeInfo("Byte", "unsigned char", 8),
    np.dtype(np.int8): DtypeInfo("Char", "signed char", 7),
    np.dtype(np.int16): DtypeInfo("Short", "short int", 15),
    np.dtype(np.int32): DtypeInfo("Int", "int", 31),
    np.dtype(np.int64): DtypeInfo("Long", "long int", 63),
    np.dtype(np.uint16): DtypeInfo("UInt16", "short unsigned int", 16),
    np.dtype(np.uint32): DtypeInfo("UInt32", "unsigned int", 32),
    np.dtype(np.uint64): DtypeInfo("UInt64", "long unsigned int", 64),
    np.dtype(np.float16): DtypeInfo("Half", "c10::Half", 11),
    BFLOAT16: DtypeInfo("BFloat16", "c10::BFloat16", 8),
    np.dtype(np.float32): DtypeInfo("Float", "float", 24),
    np.dtype(np.float64): DtypeInfo("Double", "double", 53),
    np.dtype(np.complex64): DtypeInfo("ComplexFloat", "c10::complex<float>", 24),
    np.dtype(np.complex128): DtypeInfo("ComplexDouble", "c10::complex<double>", 53),
}
FLOATING = frozenset({np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64)})
COMPLEX = frozenset({np.dtype(np.complex64), np.dtype(np.complex128)})
INTEGRAL = frozenset(np.dtype(t) for t in (np.uint8, np.int8, np.int16, np.int32, np.int64))
LARGEST = {dtype: float(ml_dtypes.finfo(dtype).max) for dtype in FLOATING}
INTEGER_LIMITS = {dtype: (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
                  for dtype in DTYPES if dtype.kind in "biu"}


def info(dtype: np.dtype) -> DtypeInfo:
    """The names and digits of `dtype`; a dtype that PyTorch does not know has NumPy's name."""
    return DTYPES.get(dtype) or DtypeInfo(str(dtype), str(dtype), 0)


def require(dtype: np.dtype, accepted: frozenset[np.dtype], kernel: str) -> None:
    """Refuse a dtype that the kernel of that name does not draw."""
    if dtype not in accepted:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{info(dtype).scalar_name}'")


def check_uniform_bounds(dtype: np.dtype, low: float, high: float) -> None:
    """Bounds of `uniform` for a real floating dtype."""
    largest = LARGEST[dtype]
    for name, bound in (("from", low), ("to", high)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {info(dtype).c_name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{info(dtype).scalar_name}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def check_full_range(dtype: np.dtype) -> None:
    """Whether `dtype` can hold, if only roughly, every signed 64-bit integer."""
    kernel = "random_full_64_bits_range_kernel_cpu"
    require(dtype, (FLOATING | INTEGRAL) - {np.dtype(np.float16)}, kernel)
    if dtype in INTEGRAL and dtype != np.int64:
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")


def check_integer_bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The bounds [low, high) that `integers` really uses; `high=None` means up to the largest integer of `dtype`.

    For a floating dtype a bound that it cannot hold moves inwards to one that it can.
    """
    if dtype not in DTYPES or dtype in COMPLEX:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    _, c_name, digits = info(dtype)
    floating = dtype in FLOATING
    for bound in (low, high):
        if bound is not None and not -(1 << 63) <= bound < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
    if high is not None and low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    smallest, largest = _representable_range(dtype)
    if high is None:
        if dtype == np.uint64:
            # PyTorch's bound is a signed 64-bit number: the largest uint64 does not fit in it.
            raise RuntimeError(f"{'from' if low < 0 else 'to - 1'} is out of bounds for {c_name}")
        high = (1 << digits) + (1 if floating else 0)
    if low < smallest or low > largest:
        raise RuntimeError(f"from is out of bounds for {c_name}")
    if high - 1 > largest or high - 1 < smallest:
        raise RuntimeError(f"to - 1 is out of bounds for {c_name}")
    if floating:
        low, high = _move_low(dtype, digits, low), _move_high(dtype, digits, high)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={high}"
            )
        for name, value in (("from", low), ("to - 1", high - 1)):
            if abs(value) > 1 << digits:
                warnings.warn(
                    f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {c_name} "
                    "can support discrete uniform distribution only within this range.",
                    UserWarning,
                    stacklevel=3,
                )
    return low, high


def _representable_range(dtype: np.dtype) -> tuple[int, int]:
    if dtype in FLOATING:
        largest = int(LARGEST[dtype])
        return -largest, largest
    return INTEGER_LIMITS[dtype]


def _as_stored(dtype: np.dtype, value: int) -> int:
    """The integer that `value` becomes when a tensor of a floating `dtype` holds it."""
    wide = np.array(value, np.int64)
    stored = wide.astype(dtype if dtype.itemsize > 2 else np.float32).astype(dtype)
    result = int(float(stored))
    # Rounding can reach 2**63, which turns negative when converted back to a signed 64-bit integer on x86-64.
    return result if result < 1 << 63 else -(1 << 63)


def _move_low(dtype: np.dtype, digits: int, low: int) -> int:
    stored = _as_stored(dtype, low + 1)
    if stored >= low:
        return low
    return stored + (1 << (abs(low + 1).bit_length() - digits))


def _move_high(dtype: np.dtype, digits: int, high: int) -> int:
    stored = _as_stored(dtype, high - 1)
    if stored < high:
        return high
    return stored - (1 << (abs(high - 1).bit_length() - digits))


PERMUTATION_LIMITS: dict[np.dtype, tuple[int, str]] = {
    np.dtype(np.float16): ((1 << 11) + 1, "2049"),
    np.dtype(np.float32): ((1 << 24) + 1, "2^24+1"),
    np.dtype(np.float64): ((1 << 53) + 1, "2^53+1"),
}


def check_permutation(n: int, dtype: np.dtype) -> None:
    """Whether `permutation` can count to `n` in `dtype`. (bfloat16 may not, but PyTorch lets it round.)"""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    require(dtype, FLOATING | INTEGRAL, "randperm")
    if dtype in PERMUTATION_LIMITS and n > PERMUTATION_LIMITS[dtype][0]:
        raise RuntimeError(
            f"n cannot be greater than {PERMUTATION_LIMITS[dtype][1]} for {info(dtype).scalar_name} type."
        )
    if dtype in INTEGRAL and n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")


def check_multinomial_shape(probabilities: Any, num_samples: int, replacement: bool) -> None:
    """The fault in the weights, whatever their values: for an array on any device."""
    if probabilities.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if probabilities.dtype not in FLOATING:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {info(probabilities.dtype).scalar_name}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > probabilities.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if probabilities.shape[-1] > 2 ** 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def check_multinomial(probabilities: np.ndarray, num_samples: int, replacement: bool) -> None:
    """Check shape, dtype and values of the weights; as in PyTorch, the algorithm decides which error comes first."""
    check_multinomial_shape(probabilities, num_samples, replacement)
    if replacement and num_samples > 1:
        if not np.all(probabilities >= 0):
            raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
        if not np.all(np.isfinite(probabilities)):
            raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    else:
        if probabilities.size == 0 and probabilities.shape[-1] == 0:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        if not np.all((probabilities >= 0) & np.isfinite(probabilities)):
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if np.any(np.sum(probabilities, axis=-1, dtype=np.float64) <= 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
