"""Samplers that may throw a draw away: gamma and Dirichlet numbers.

PyTorch draws element after element, and the number of words per element depends on their values. This reproduces that
stream exactly: it assumes that the next elements are all accepted at once, computes them together, and starts again
after the first one that was not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .rng import MersenneGenerator
from .rng_engine import _box_muller_pairs

Array = Any
SHORT, LONG = 32, 4096


class Ahead:
    """Doubles read ahead of the generator's own position, which advances at the end by the number used."""

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

    def one(self) -> float:
        """The next double."""
        if self.used == len(self.buffer):
            self.peek(1)
        self.used += 1
        return float(self.buffer[self.used - 1])

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
