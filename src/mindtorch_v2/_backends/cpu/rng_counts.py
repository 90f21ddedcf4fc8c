"""Poisson and binomial numbers, equal to PyTorch's from the same stream.

PyTorch draws element after element, and the number of words per element depends on their values: each element is a loop
of its own. It runs in C (`random.c`), or here without that. Large means use Hörmann's transformed rejection. Small
means count: products of uniforms for Poisson, geometric gaps for binomial numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import providers
from .rng import MersenneGenerator
from .rng_rejection import Ahead

Draw = Callable[[], float]


def poisson(engine: MersenneGenerator, rates: np.ndarray) -> np.ndarray:
    """Counts of a Poisson distribution, in float64."""
    made = np.array(rates, np.float64, order="C")
    if (made < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    with engine._lock:
        if providers.draws():
            providers.native.random_poisson(engine._capsule, made)
            engine._untouched = False
        else:
            stream = Ahead(engine)
            numbers = [_poisson_number(stream.one, rate) for rate in made.reshape(-1).tolist()]
            made[...] = np.reshape(numbers, made.shape)
            stream.close()
    return made


def binomial(engine: MersenneGenerator, counts: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Numbers of successes, in float64."""
    made, p = (np.array(a, np.float64, order="C") for a in np.broadcast_arrays(counts, probabilities))
    with engine._lock:
        if providers.draws():
            providers.native.random_binomial(engine._capsule, made, p)
            engine._untouched = False
        else:
            stream = Ahead(engine)
            pairs = zip(made.reshape(-1).tolist(), p.reshape(-1).tolist())
            made[...] = np.reshape([_binomial_number(stream.one, *pair) for pair in pairs], made.shape)
            stream.close()
    return made


def _poisson_number(draw: Draw, rate: float) -> float:
    if not rate > 0:
        return 0.0
    if rate < 10:
        limit, product, k = math.exp(-rate), draw(), 0.0
        while product > limit:
            product *= draw()
            k += 1
        return k
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    while True:
        u, v = draw() - 0.5, draw()
        near = 0.5 - abs(u)
        k = math.floor((2 * a / near + b) * u + rate + 0.43) if near else -1.0
        if near >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (near < 0.013 and v > near):
            continue
        level = _log(v) + math.log(1.1239 + 1.1328 / (b - 3.4)) - math.log(a / (near * near) + b)
        if level <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k


def _binomial_number(draw: Draw, trials: float, p: float) -> float:
    if not trials > 0 or p <= 0:
        return 0.0
    if p >= 1:
        return trials
    if math.isnan(p):
        return p
    q = p if p <= 0.5 else 1 - p
    k = _many_successes(draw, trials, q) if trials * q >= 10 else _few_successes(draw, trials, q)
    return k if p <= 0.5 else trials - k


def _few_successes(draw: Draw, trials: float, p: float) -> float:
    k, reached, rate = 0.0, 0.0, math.log1p(-p)
    while True:
        gap = _log(draw()) / rate
        reached += gap if math.isinf(gap) else math.ceil(gap)
        if not reached <= trials:
            return k
        k += 1


def _many_successes(draw: Draw, trials: float, p: float) -> float:
    spread = math.sqrt(trials * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds, mode = p / (1 - p), math.floor((trials + 1) * p)
    while True:
        u, v = draw() - 0.5, draw()
        near = 0.5 - abs(u)
        k = math.floor((2 * a / near + b) * u + trials * p + 0.5) if near else -1.0
        if near >= 0.07 and v <= 0.92 - 4.2 / b:
            return k
        if k < 0 or k > trials:
            continue
        level = _log(v * ((2.83 + 5.1 / b) * spread) / (a / (near * near) + b))
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (trials - mode + 1)))
                 + (trials + 1) * math.log((trials - mode + 1) / (trials - k + 1))
                 + (k + 0.5) * math.log(odds * (trials - k + 1) / (k + 1))
                 + _stirling_rest(mode) + _stirling_rest(trials - mode)
                 - _stirling_rest(k) - _stirling_rest(trials - k))
        if level <= bound:
            return k


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _stirling_rest(k: float) -> float:
    """What is left of log(k!) after Stirling's formula for it."""
    return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
