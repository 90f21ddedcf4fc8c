"""Box-Muller in float32 with the Cephes approximations of log, sin and cos, rounded where an AVX2 kernel rounds.

PyTorch's x86-64 build fills float32 normals with these polynomials (S. Moshier's Cephes library, single precision)
and lets the compiler fuse multiplications with the additions after them. Done step for step in the same order, the
result is the same to the last bit; an accurate logarithm or sine would differ in a third of the numbers.
"""

from __future__ import annotations

import numpy as np

__all__ = ["float32_box_muller"]

F = np.float32
# float32 bit patterns: the mantissa field, 0.5, and sqrt(0.5).
MANTISSA_MASK, HALF_BITS, SQRT_HALF_BITS = 0x007FFFFF, 0x3F000000, 0x3F3504F3
LOG_COEFFICIENTS = [
    F(value)
    for value in (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    )
]  # fmt: skip
# ln 2 in two parts, so that exponent * LN2_HIGH is exact.
LN2_HIGH, LN2_LOW = F(0.693359375), F(-2.12194440e-4)
FOUR_OVER_PI = F(1.27323954473516)
# -pi/4 in three parts, for the same reason.
MINUS_QUARTER_PI = [F(-0.78515625), F(-2.4187564849853515625e-4), F(-3.77489497744594108e-8)]
COS_COEFFICIENTS = [F(2.443315711809948e-5), F(-1.388731625493765e-3), F(4.166664568298827e-2)]
SIN_COEFFICIENTS = [F(-1.9515295891e-4), F(8.3321608736e-3), F(-1.6666654611e-1)]
TWO_PI = F(6.283185307179586)


def float32_box_muller(unit: np.ndarray) -> np.ndarray:
    """Standard normals from float32 uniforms of [0, 1): of each 16, 8 radii and 8 angles give 8 cosines, 8 sines."""
    blocks = unit.reshape(-1, 2, 8)
    radius = np.sqrt(F(-2) * _log(F(1) - blocks[:, 0]))
    sine, cosine = _sine_and_cosine(TWO_PI * blocks[:, 1])
    result = np.empty_like(blocks)
    np.multiply(radius, cosine, out=result[:, 0])
    np.multiply(radius, sine, out=result[:, 1])
    return result.reshape(-1)


def _fused(a: np.ndarray, b: np.ndarray | np.float32, c: np.ndarray | np.float32) -> np.ndarray:
    """a * b + c of float32 values: the product is exact in float64, a second rounding does harm once in 2**29 times.

    An operand may be given as float64 (with float32 values), to convert it once for many calls.
    """
    total = a.astype(np.float64)
    total *= b
    total += c
    return total.astype(np.float32)


def _log(values: np.ndarray) -> np.ndarray:
    """For normal numbers of (0, 1]. The mantissa x + 1 is taken from [sqrt(1/2), sqrt(2))."""
    bits = values.view(np.int32)
    mantissa_bits = (bits & MANTISSA_MASK) | HALF_BITS
    below = (mantissa_bits < SQRT_HALF_BITS).astype(np.int32)
    exponent = ((bits >> 23) - (below + 126)).astype(np.float32)
    x = (mantissa_bits + (below << 23)).view(np.float32) - F(1)
    square = x * x
    x_wide = x.astype(np.float64)
    y = _fused(x_wide, LOG_COEFFICIENTS[0], LOG_COEFFICIENTS[1])
    for coefficient in LOG_COEFFICIENTS[2:]:
        y = _fused(y, x_wide, coefficient)
    y = _fused(y * x, square, exponent * LN2_LOW)
    y -= F(0.5) * square  # halving is exact, so there is nothing to fuse
    return _fused(exponent, LN2_HIGH, x + y)


def _sine_and_cosine(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For angles from zero up. `octant` is made even: it counts quarter turns twice."""
    octant = ((angle * FOUR_OVER_PI).astype(np.int32) + 1) & ~1
    steps = octant.astype(np.float64)
    x = angle
    for part in MINUS_QUARTER_PI:
        x = _fused(steps, part, x)
    square = x * x
    square_wide = square.astype(np.float64)
    even = _fused(square_wide, COS_COEFFICIENTS[0], COS_COEFFICIENTS[1])
    even = _fused(even, square_wide, COS_COEFFICIENTS[2]) * square
    even = _fused(even, square_wide, F(-0.5) * square) + F(1)
    odd = _fused(square_wide, SIN_COEFFICIENTS[0], SIN_COEFFICIENTS[1])
    odd = _fused(odd, square_wide, SIN_COEFFICIENTS[2]) * square
    odd = _fused(odd, x, x)
    # Exchanging and negating by bit masks is several times faster here than np.where.
    even_bits, odd_bits = even.view(np.int32), odd.view(np.int32)
    exchange = (even_bits ^ odd_bits) & -((octant >> 1) & 1)
    sine_sign = (octant & 4) << 29
    cosine_sign = (~(octant - 2) & 4) << 29
    return (odd_bits ^ exchange ^ sine_sign).view(np.float32), (even_bits ^ exchange ^ cosine_sign).view(np.float32)
