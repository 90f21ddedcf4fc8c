"""Bessel functions of order 0 and 1, and Airy's function, to about 14 digits.

Close to zero they are computed from power series or from integrals of smooth periodic or quickly decaying functions,
which few equal steps integrate to the last digit; far away from asymptotic series. As in PyTorch, the oscillating
functions and those that grow are NaN at infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
EULER = 0.5772156649015329
# From here on 25 terms of the asymptotic series are exact.
FAR = 25.0
# Steps of a quarter of the circle: enough for every frequency that matters below FAR.
ANGLES = (np.arange(48) + 0.5) * (math.pi / 2.0 / 48)
HARMONICS = np.arange(1, 40)


def _weights(values: Array) -> list[tuple[float, float]]:
    return [(math.sin(angle), float(value) / len(ANGLES)) for angle, value in zip(ANGLES, values, strict=True)]


# J_0, and the sum of (-1)^k J_2k / k that Y_0 needs; J_1, and the sum of (-1)^k (2k+1) J_2k+1 / (k (k+1)) for Y_1.
_SIGNS = (-1.0) ** HARMONICS
WEIGHTS_J0 = _weights(np.ones(len(ANGLES)))
WEIGHTS_Y0 = _weights(np.cos(2 * np.outer(ANGLES, HARMONICS)) @ (_SIGNS / HARMONICS))
WEIGHTS_J1 = _weights(np.sin(ANGLES))
WEIGHTS_Y1 = _weights(np.sin(np.outer(ANGLES, 2 * HARMONICS + 1))
                      @ (_SIGNS * (2 * HARMONICS + 1) / (HARMONICS * (HARMONICS + 1))))


def _integral(wave: Any, x: Array, weights: list[tuple[float, float]]) -> Array:
    total = np.zeros_like(x)
    for sine, weight in weights:
        total = total + wave(x * sine) * weight
    return total


def _amplitudes(x: Array, order: int) -> tuple[Array, Array]:
    """The slowly varying factors P and Q of the oscillation far away."""
    p, q, term = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(1, 26):
        term = term * (4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k * x)
        sign = -1.0 if k // 2 % 2 else 1.0
        if k % 2:
            q = q + sign * term
        else:
            p = p + sign * term
    return p, q


def _oscillating(x: Array, order: int, first: bool) -> Array:
    p, q = _amplitudes(x, order)
    # sin and cos of x - pi/4 - order pi/2, from those of x itself so that no digits of x are lost.
    sine, cosine = np.sin(x), np.cos(x)
    across, along = (sine - cosine, sine + cosine) if order == 0 else (-sine - cosine, sine - cosine)
    value = p * along - q * across if first else p * across + q * along
    return value / np.sqrt(math.pi * x)


def bessel_j(x: Array, order: int) -> Array:
    """The Bessel function of the first kind, order 0 or 1."""
    size = np.abs(x)
    near = np.minimum(size, FAR)
    value = _integral(np.cos, near, WEIGHTS_J0) if order == 0 else _integral(np.sin, near, WEIGHTS_J1)
    if order == 1:
        value = np.where(near < 1e-3, near / 2.0 * (1.0 - near * near / 8.0), value)
    far = _oscillating(np.maximum(size, FAR), order, True)
    value = np.where(size <= FAR, value, far)
    return np.where(x < 0, -value, value) if order == 1 else value


def bessel_y(x: Array, order: int) -> Array:
    """The Bessel function of the second kind, order 0 or 1."""
    near = np.clip(x, 1e-300, FAR)
    log = np.log(near / 2.0) + EULER
    if order == 0:
        value = 2.0 / math.pi * (log * _integral(np.cos, near, WEIGHTS_J0)
                                 - 2.0 * _integral(np.cos, near, WEIGHTS_Y0))
    else:
        value = 2.0 / math.pi * ((log - 1.0) * bessel_j(near, 1) - _integral(np.cos, near, WEIGHTS_J0) / near
                                 - _integral(np.sin, near, WEIGHTS_Y1))
    value = np.where(x <= FAR, value, _oscillating(np.maximum(x, FAR), order, False))
    return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


def _far_series(x: Array, order: int, sign: float) -> Array:
    series = term = np.ones_like(x)
    for k in range(1, 25):
        term = term * sign * (4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k * x)
        series = series + term
    return series


def bessel_i_scaled(x: Array, order: int) -> Array:
    """exp(-|x|) times the modified Bessel function of the first kind."""
    size = np.abs(x)
    near = np.minimum(size, FAR)
    steps = 48
    total = (1.0 + (-1.0) ** order * np.exp(-2.0 * near)) / 2.0
    for k in range(1, steps):
        cosine = math.cos(math.pi * k / steps)
        total = total + np.exp(near * (cosine - 1.0)) * math.cos(math.pi * k * order / steps)
    far = np.maximum(size, FAR)
    value = np.where(size <= FAR, total / steps, _far_series(far, order, -1.0) / np.sqrt(2.0 * math.pi * far))
    if order == 0:
        return value
    value = np.where(size < 1e-3, size / 2.0 * (1.0 + size * size / 8.0) * np.exp(-size), value)
    return np.copysign(value, x)


def bessel_i(x: Array, order: int) -> Array:
    """The modified Bessel function of the first kind."""
    half = np.exp(np.abs(x) / 2.0)
    return half * (half * bessel_i_scaled(x, order))


def _k_series(x: Array, order: int) -> Array:
    """The modified function of the second kind for x <= 2."""
    square = x * x / 4.0
    regular, extra = np.zeros_like(x), np.zeros_like(x)
    harmonic, term = 0.0, np.ones_like(x)
    for k in range(22):
        regular = regular + term
        extra = extra + term * (harmonic if order == 0 else harmonic + 0.5 / (k + 1))
        term = term * square / ((k + 1) * (k + 1 + order))
        harmonic += 1.0 / (k + 1)
    log = np.log(x / 2.0) + EULER
    if order == 0:
        return extra - log * regular
    return 1.0 / x + x / 2.0 * (log * regular - extra)


def bessel_k_scaled(x: Array, order: float) -> Array:
    """exp(x) times the modified Bessel function of the second kind, of any order below 2, for x >= 2 or so."""
    middle = np.clip(x, 1.5, FAR)
    step = 0.125
    total = np.full_like(middle, 0.5)
    for k in range(1, 34):
        at = k * step
        total = total + np.exp(-middle * (math.cosh(at) - 1.0)) * math.cosh(order * at)
    far = np.maximum(x, FAR)
    distant = np.sqrt(math.pi / (2.0 * far)) * _far_series_any(far, order)
    return np.where(x <= FAR, total * step, distant)


def _far_series_any(x: Array, order: float) -> Array:
    series = term = np.ones_like(x)
    for k in range(1, 25):
        term = term * (4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k * x)
        series = series + term
    return series


def bessel_k(x: Array, order: int, scaled: bool) -> Array:
    """The modified Bessel function of the second kind, order 0 or 1, times exp(x) if `scaled`."""
    small = np.clip(x, 1e-300, 2.0)
    low = _k_series(small, order)
    high = bessel_k_scaled(np.maximum(x, 2.0), order)
    value = np.where(x <= 2.0, low * np.exp(small), high) if scaled else np.where(x <= 2.0, low, high * np.exp(-x))
    value = np.where(np.isposinf(x), 0.0, value)
    return np.where(x > 0, value, np.where(x == 0, np.inf, np.nan))


def spherical_j0(x: Array) -> Array:
    """sin(x) / x."""
    size = np.abs(x)
    square = np.minimum(size, 0.5) ** 2
    near = 1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0 * (
        1.0 - square / 110.0 * (1.0 - square / 156.0)))))
    far = np.where(np.isinf(size), 0.0, np.sin(size) / np.where(size == 0, 1.0, size))
    return np.where(size < 0.5, near, far)


# -- Airy ------------------------------------------------------------------------------------------------------------

AIRY_AT_ZERO, AIRY_SLOPE = 0.3550280538878172, 0.2588194037928068
# A substitution by which the integral of exp(-u) u^(-1/6) (...) converges with equal steps.
_S = np.arange(-60, 41) * 0.09
_U = np.exp(_S - np.exp(-_S))
NODES = [(float(u), float(w)) for u, w in zip(
    _U, 0.09 * (1.0 + np.exp(-_S)) * _U ** (5.0 / 6.0) * np.exp(-_U), strict=True) if w > 1e-20]
GAMMA_FIVE_SIXTHS = math.gamma(5.0 / 6.0)


def _airy_series(x: Array) -> Array:
    cube = x ** 3
    first, second = np.zeros_like(x), np.zeros_like(x)
    one, other = np.ones_like(x), x
    for k in range(1, 40):
        first, second = first + one, second + other
        one = one * cube / ((3 * k) * (3 * k - 1))
        other = other * cube / ((3 * k + 1) * (3 * k))
    return AIRY_AT_ZERO * first - AIRY_SLOPE * second


def _airy_negative(x: Array) -> Array:
    """For x below -4, by the integral of the Hankel function of order 1/3."""
    size = -x
    zeta = 2.0 / 3.0 * size * np.sqrt(size)
    total = np.zeros(x.shape, np.complex128)
    for u, weight in NODES:
        total = total + weight * (1.0 + 0.5j * u / zeta) ** (-1.0 / 6.0)
    wave = np.exp(1j * (zeta - math.pi / 4.0)) * total / GAMMA_FIVE_SIXTHS
    return np.real(wave) / (math.sqrt(math.pi) * np.sqrt(np.sqrt(size)))


def airy(x: Array) -> Array:
    """Airy's function Ai."""
    inner = _airy_series(np.clip(x, -4.0, 2.0))
    large = np.maximum(x, 2.0)
    zeta = 2.0 / 3.0 * large * np.sqrt(large)
    above = np.sqrt(large / 3.0) / math.pi * bessel_k_scaled(zeta, 1.0 / 3.0) * np.exp(-zeta)
    below = _airy_negative(np.minimum(x, -4.0))
    value = np.where(x < -4.0, below, np.where(x > 2.0, above, inner))
    return np.where(np.isinf(x), np.nan, value)
