"""Samplers that may throw a draw away: gamma, Dirichlet, Poisson and binomial numbers.

PyTorch draws element after element, and how many words an element takes depends on what they are. The gamma sampler
reproduces that stream exactly: it assumes that the next elements are all accepted at once, computes them together, and
starts again behind the first one that was not. The Poisson and binomial samplers draw for all unfinished elements at
once, round after round. Theirs are the right distributions, and PyTorch's numbers for a single element, but for
several elements the words are handed out in another order than PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rng import MersenneGenerator
from .rng_engine import _box_muller_pairs
from .special import lgamma

Array = Any
SHORT, LONG = 32, 4096


class Ahead:
    """Doubles read ahead of the generator's own place, which moves at the end by as many as were used."""

    def __init__(self, engine: MersenneGenerator) -> None:
        self.engine = engine
        self.before = engine._bits.state
        self.untouched = engine._untouched
        self.buffer = np.empty(0)
        self.used = 0

    def peek(self, count: int) -> Array:
        """The next doubles, without moving on."""
        missing = self.used + count - len(self.buffer)
        if missing > 0:
            more = self.engine._unit_doubles(max(missing, len(self.buffer), 64))
            self.buffer = np.concatenate([self.buffer, more])
        return self.buffer[self.used:self.used + count]

    def close(self) -> None:
        """Put the generator where one that had not read ahead would be."""
        self.engine._bits.state = self.before
        self.engine._untouched = self.untouched
        if self.used:
            self.engine._words(2 * self.used)


def standard_gamma(engine: MersenneGenerator, shape_parameters: Array) -> Array:
    """Gamma numbers of rate 1 in float64 (Marsaglia and Tsang's method), PyTorch's from the same stream."""
    flat = shape_parameters.astype(np.float64).reshape(-1)
    result = np.zeros(flat.size)
    active = np.flatnonzero(flat != 0)
    with engine._lock:
        result[active] = _gamma_run(engine, flat[active])
    return result.reshape(shape_parameters.shape)


def _gamma_run(engine: MersenneGenerator, alphas: Array) -> Array:
    stream = Ahead(engine)
    boosted = alphas < 1
    bases = np.where(boosted, alphas + 1, alphas) - 1.0 / 3.0
    slopes = 1.0 / np.sqrt(9.0 * bases)
    result = np.empty(alphas.size)
    done = 0
    window = SHORT
    kept: float | None = engine._double_sample
    scale: float | None = None  # of an element that has its boost already but no accepted draw yet
    while done < alphas.size:
        now = slice(done, done + window)
        boost = boosted[now].astype(np.int64)
        if scale is not None:
            boost[0] = 0
        count = boost.size
        steps = np.arange(count)
        fresh = ((steps - (kept is not None)) % 2 == 0).astype(np.int64)
        # Where each element's numbers are, if all before it are accepted: its boost, its pair of uniforms for two
        # normals if none is left over, and the uniform that decides.
        sizes = boost + 2 * fresh + 1
        ends = np.cumsum(sizes)
        starts = ends - sizes
        doubles = stream.peek(int(ends[-1]))
        scales = np.ones(count)
        where = np.flatnonzero(boost)
        scales[where] = np.power(1.0 - doubles[starts[where]], 1.0 / alphas[now][where])
        if scale is not None:
            scales[0] = scale
        pairs = starts[fresh == 1] + boost[fresh == 1]
        normals = _box_muller_pairs(np.stack([doubles[pairs], doubles[pairs + 1]], 1).reshape(-1))
        if kept is not None:
            normals = np.concatenate([[kept], normals])
        x = normals[:count]
        y = 1.0 + slopes[now] * x
        cubes = y * y * y
        u = 1.0 - doubles[ends - 1]
        squares = x * x
        accepted = (u < 1.0 - 0.0331 * squares * squares) | (
            np.log(u) < 0.5 * squares + bases[now] * (1.0 - cubes + np.log(cubes)))
        good = (y > 0) | np.isnan(y)
        accepted &= good
        stop = count if accepted.all() else int(np.argmin(accepted))
        result[done:done + stop] = scales[:stop] * bases[now][:stop] * cubes[:stop]
        done += stop
        scale = None
        last = stop
        if stop < count:
            # This one starts over: with a new normal and, if this normal was usable, a new uniform too.
            scale = float(scales[stop])
            stream.used += int(ends[stop]) - (0 if good[stop] else 1)
        else:
            last = count - 1
            stream.used += int(ends[last])
        kept = float(normals[last + 1]) if fresh[last] else None
        window = min(max(2 * stop, SHORT), LONG)
    stream.close()
    engine._double_sample = kept
    return result


def dirichlet(engine: MersenneGenerator, concentration: Array) -> Array:
    """Points of the simplex: gamma numbers divided by their sum."""
    gammas = standard_gamma(engine, concentration)
    info = np.finfo(np.float32) if concentration.dtype.itemsize < 8 else np.finfo(np.float64)
    made = gammas / gammas.sum(-1, keepdims=True)
    return np.clip(made, float(info.tiny), float(np.nextafter(info.dtype.type(1), info.dtype.type(0))))


def poisson(engine: MersenneGenerator, rates: Array) -> Array:
    """Counts of a Poisson distribution, in float64."""
    flat = rates.astype(np.float64).reshape(-1)
    if (flat < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    result = np.zeros(flat.size)
    with engine._lock:
        _poisson_small(engine, flat, np.flatnonzero((flat > 0) & (flat < 10)), result)
        _poisson_large(engine, flat, np.flatnonzero(flat >= 10), result)
    return result.reshape(rates.shape)


def _poisson_small(engine: MersenneGenerator, rates: Array, active: Array, result: Array) -> None:
    """Multiply uniforms until the product falls to exp(-rate)."""
    limits = np.exp(-rates[active])
    products = np.ones(active.size)
    while active.size:
        products = products * engine._unit_doubles(active.size)
        going = products > limits
        active, limits, products = active[going], limits[going], products[going]
        result[active] += 1


def _poisson_large(engine: MersenneGenerator, rates: Array, active: Array, result: Array) -> None:
    """Hörmann's transformed rejection."""
    while active.size:
        rate = rates[active]
        b = 0.931 + 2.53 * np.sqrt(rate)
        a = -0.059 + 0.02483 * b
        words = engine._unit_doubles(2 * active.size)
        u, v = words[0::2] - 0.5, words[1::2]
        near = 0.5 - np.abs(u)
        k = np.floor((2 * a / near + b) * u + rate + 0.43)
        quick = (near >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        hopeless = (k < 0) | ((near < 0.013) & (v > near))
        level = np.log(v) + np.log(1.1239 + 1.1328 / (b - 3.4)) - np.log(a / (near * near) + b)
        exact = level <= -rate + k * np.log(rate) - lgamma(np.maximum(k, 0.0) + 1)
        accepted = quick | (~hopeless & exact)
        result[active[accepted]] = k[accepted]
        active = active[~accepted]


def binomial(engine: MersenneGenerator, counts: Array, probabilities: Array) -> Array:
    """Numbers of successes, in float64."""
    n, p = (np.array(a, np.float64).reshape(-1) for a in np.broadcast_arrays(counts, probabilities))
    shape = np.broadcast_shapes(counts.shape, probabilities.shape)
    flipped = p > 0.5
    q = np.where(flipped, 1 - p, p)
    result = np.where(np.isnan(p), np.nan, np.zeros(n.size))
    active = (n > 0) & (p > 0) & (p < 1)
    many = n * q >= 10
    with engine._lock:
        _binomial_small(engine, n, q, np.flatnonzero(active & ~many), result)
        _binomial_large(engine, n, q, np.flatnonzero(active & many), result)
    result = np.where(flipped, n - result, result)
    return np.where((n <= 0) | (p <= 0), 0, result).reshape(shape)


def _binomial_small(engine: MersenneGenerator, n: Array, p: Array, active: Array, result: Array) -> None:
    """Count geometric gaps until they exceed the number of trials."""
    reached = np.zeros(active.size)
    while active.size:
        gaps = np.ceil(np.log(engine._unit_doubles(active.size)) / np.log1p(-p[active]))
        reached = reached + gaps
        going = reached <= n[active]
        active, reached = active[going], reached[going]
        result[active] += 1


def _stirling_rest(k: Array) -> Array:
    """log(k!) less Stirling's formula for it."""
    return lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * np.log(k + 1) - (k + 1))


def _binomial_large(engine: MersenneGenerator, n: Array, p: Array, active: Array, result: Array) -> None:
    """Hörmann's transformed rejection with squeeze."""
    while active.size:
        count, prob = n[active], p[active]
        spread = np.sqrt(count * prob * (1 - prob))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * prob
        centre = count * prob + 0.5
        words = engine._unit_doubles(2 * active.size)
        u, v = words[0::2] - 0.5, words[1::2]
        near = 0.5 - np.abs(u)
        k = np.floor((2 * a / near + b) * u + centre)
        outside = (k < 0) | (k > count)
        quick = (near >= 0.07) & (v <= 0.92 - 4.2 / b)
        inside = np.clip(k, 0.0, count)
        odds = prob / (1 - prob)
        mode = np.floor((count + 1) * prob)
        level = np.log(v * (2.83 + 5.1 / b) * spread / (a / (near * near) + b))
        bound = ((mode + 0.5) * np.log((mode + 1) / (odds * (count - mode + 1)))
                 + (count + 1) * np.log((count - mode + 1) / (count - inside + 1))
                 + (inside + 0.5) * np.log(odds * (count - inside + 1) / (inside + 1))
                 + _stirling_rest(mode) + _stirling_rest(count - mode)
                 - _stirling_rest(inside) - _stirling_rest(count - inside))
        accepted = ~outside & (quick | (level <= bound))
        result[active[accepted]] = k[accepted]
        active = active[~accepted]
