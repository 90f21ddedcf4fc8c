"""Box-Muller in float32 with the Cephes approximations of log, sin and cos, rounded where an AVX2 kernel rounds.

PyTorch's x86-64 build fills float32 normals with these polynomials (S. Moshier's Cephes library, single precision)
and lets the compiler fuse multiplications with the additions after them. Done step for step in the same order, the
result is the same to the last bit; an accurate logarithm or sine would differ in a third of the numbers.
"""

from __future__ import annotations

import numpy as np

__all__ = ["float32_box_muller"]


def _float32(value: float) -> np.ndarray:
    """A constant as an array without dimensions, which arithmetic takes faster than a number."""
    return np.array(value, np.float32)


def _wide(*values: float) -> list[np.ndarray]:
    """float32 constants, as float64: for the fused steps."""
    return [np.array(np.float32(value), np.float64) for value in values]


def _bits(value: int) -> np.ndarray:
    return np.array(value, np.int32)


# float32 bit patterns: the mantissa field, 0.5, and sqrt(0.5).
MANTISSA_MASK, HALF_BITS, SQRT_HALF_BITS = _bits(0x007FFFFF), _bits(0x3F000000), _bits(0x3F3504F3)
EXPONENT_PLACE, EXPONENT_BIAS = _bits(23), _bits(126)
ONE_BIT, EVEN_BITS, SIGN_BIT = _bits(1), _bits(~1), _bits(-(1 << 31))
SIGN_DISTANCE = _bits(29)  # from the bit worth 4 to the sign
ONE, HALF, MINUS_HALF, MINUS_TWO = _float32(1), _float32(0.5), _float32(-0.5), _float32(-2)
LOG_COEFFICIENTS = _wide(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
# ln 2 in two parts, so that exponent * LN2_HIGH is exact.
LN2_HIGH, LN2_LOW = _wide(0.693359375, -2.12194440e-4)
FOUR_OVER_PI = _float32(1.27323954473516)
# -pi/4 in three parts, for the same reason.
MINUS_QUARTER_PI = _wide(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
COS_COEFFICIENTS = _wide(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN_COEFFICIENTS = _wide(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
TWO_PI = _float32(6.283185307179586)


def float32_box_muller(unit: np.ndarray) -> np.ndarray:
    """Standard normals from float32 uniforms of [0, 1): of each 16, 8 radii and 8 angles give 8 cosines, 8 sines."""
    blocks = unit.reshape(-1, 2, 8)
    radius = _log(np.subtract(ONE, blocks[:, 0]))
    np.multiply(radius, MINUS_TWO, radius)
    np.sqrt(radius, radius)
    sine, cosine = _sine_and_cosine(np.multiply(blocks[:, 1], TWO_PI))
    result = np.empty_like(blocks)
    np.multiply(radius, cosine, result[:, 0])
    np.multiply(radius, sine, result[:, 1])
    return result.reshape(-1)


def _fuse(made: np.ndarray, total: np.ndarray, factor: np.ndarray, addend: np.ndarray) -> None:
    """made = total * factor + addend, where `total` holds float32 values as float64 and is spent.

    The product is exact in float64; that the sum is rounded twice does harm once in 2**29 times.
    """
    np.multiply(total, factor, total)
    np.add(total, addend, total)
    made[...] = total


def _log(values: np.ndarray) -> np.ndarray:
    """For normal numbers of (0, 1]. The mantissa x + 1 is taken from [sqrt(1/2), sqrt(2))."""
    bits = values.view(np.int32)
    mantissa_bits = np.bitwise_and(bits, MANTISSA_MASK)
    np.bitwise_or(mantissa_bits, HALF_BITS, mantissa_bits)
    below = np.less(mantissa_bits, SQRT_HALF_BITS).astype(np.int32)
    exponent = np.right_shift(bits, EXPONENT_PLACE)
    np.subtract(exponent, below, exponent)
    np.subtract(exponent, EXPONENT_BIAS, exponent)
    np.left_shift(below, EXPONENT_PLACE, below)
    np.add(mantissa_bits, below, mantissa_bits)
    x = np.subtract(mantissa_bits.view(np.float32), ONE)
    x_wide, exponent_wide = x.astype(np.float64), exponent.astype(np.float64)
    y, total = np.empty_like(x), x_wide.copy()
    _fuse(y, total, LOG_COEFFICIENTS[0], LOG_COEFFICIENTS[1])
    for coefficient in LOG_COEFFICIENTS[2:]:
        total[...] = y
        _fuse(y, total, x_wide, coefficient)
    np.multiply(y, x, y)
    square = np.multiply(x, x)
    total[...] = y
    # The product of an exponent and a part of ln 2 is rounded before it is added, the one below is exact.
    _fuse(y, total, square, np.multiply(exponent_wide, LN2_LOW).astype(np.float32))
    np.multiply(square, HALF, square)  # halving is exact, so there is nothing to fuse
    np.subtract(y, square, y)
    np.add(y, x, y)
    _fuse(y, exponent_wide, LN2_HIGH, y)
    return y


def _sine_and_cosine(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For angles from zero up, which are spent. `octant` is made even: it counts quarter turns twice."""
    octant = np.multiply(angle, FOUR_OVER_PI).astype(np.int32)
    np.add(octant, ONE_BIT, octant)
    np.bitwise_and(octant, EVEN_BITS, octant)
    steps = octant.astype(np.float64)
    x, total = angle, np.empty_like(steps)
    for part in MINUS_QUARTER_PI:
        total[...] = steps
        _fuse(x, total, part, x)
    square = np.multiply(x, x)
    square_wide = square.astype(np.float64)
    even, odd = np.empty_like(x), np.empty_like(x)
    for made, coefficients in ((even, COS_COEFFICIENTS), (odd, SIN_COEFFICIENTS)):
        total[...] = square_wide
        _fuse(made, total, coefficients[0], coefficients[1])
        total[...] = made
        _fuse(made, total, square_wide, coefficients[2])
        np.multiply(made, square, made)
    total[...] = even
    np.multiply(square, MINUS_HALF, square)
    _fuse(even, total, square_wide, square)
    np.add(even, ONE, even)
    total[...] = odd
    _fuse(odd, total, x, x)
    return _turn(octant, even.view(np.int32), odd.view(np.int32))


def _turn(octant: np.ndarray, even_bits: np.ndarray, odd_bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine from the two series, exchanged and negated by bit masks: several times faster than np.where."""
    exchange = np.right_shift(octant, ONE_BIT)
    np.bitwise_and(exchange, ONE_BIT, exchange)
    np.negative(exchange, exchange)
    np.bitwise_and(exchange, np.bitwise_xor(even_bits, odd_bits), exchange)
    np.bitwise_xor(odd_bits, exchange, odd_bits)
    np.bitwise_xor(even_bits, exchange, even_bits)
    sign = np.left_shift(octant, SIGN_DISTANCE)
    np.bitwise_and(sign, SIGN_BIT, sign)
    np.bitwise_xor(odd_bits, sign, odd_bits)
    # The cosine is negative in the octants 2 and 4: where the bits worth 2 and 4 differ.
    np.left_shift(octant, SIGN_DISTANCE + ONE_BIT, exchange)
    np.bitwise_and(exchange, SIGN_BIT, exchange)
    np.bitwise_xor(exchange, sign, sign)
    np.bitwise_xor(even_bits, sign, even_bits)
    return odd_bits.view(np.float32), even_bits.view(np.float32)
