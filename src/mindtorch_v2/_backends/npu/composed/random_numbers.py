"""Random numbers, from the seed and offset of a generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._shape import broadcast_shapes
from ...cpu.rng_checks import check_multinomial_shape
from ..arrays import BOOL, FLOAT32, NpuArray, converted, like, new, placed
from ..call import CALLS
from .order import topk
from .places import cat
from .registry import composed


def draw(generator: Any) -> tuple[int, int]:
    """Seed and offset for an operator."""
    return generator._engine.next()


@composed("random.from/inplace")
def random_from(self: NpuArray, low: int, high: Any, generator: Any) -> NpuArray:
    """Integers from a range."""
    CALLS.InplaceRandom(self, low, _largest(self.dtype) if high is None else high, *draw(generator))
    return self


def _largest(dtype: np.dtype) -> int:
    """One more than the largest number of `random_`: a dtype counts exactly up to it."""
    if dtype.kind in "iu":
        return min(int(np.iinfo(dtype).max) + 1, (1 << 63) - 1)
    if dtype == BOOL:
        return 2
    return {2: 1 << 11, 4: 1 << 24}.get(dtype.itemsize, 1 << 53) + 1


@composed("permute_into")
def permute_into(self: NpuArray, n: int, generator: Any) -> None:
    """The first integers in random order."""
    if n:
        CALLS.Randperm(n, *draw(generator), self)


@composed("random.to/inplace")
def random_to(self: NpuArray, high: int, generator: Any) -> NpuArray:
    """Integers below a number."""
    return random_from(self, 0, high, generator)


@composed("random/inplace")
def random(self: NpuArray, generator: Any) -> NpuArray:
    """Integers from the whole range of the dtype."""
    return random_from(self, 0, None, generator)


@composed("bernoulli")
def bernoulli(self: NpuArray, generator: Any) -> NpuArray:
    """1 with the probability in each element."""
    return _below(like(self), self, generator)


def _below(out: NpuArray, probability: NpuArray, generator: Any) -> NpuArray:
    drawn, truth = like(out, FLOAT32), like(out, BOOL)
    seed, offset = draw(generator)
    CALLS.InplaceUniform(drawn, 0.0, 1.0, seed & 0xFFFF_FFFF_FFFF_FFFF, offset)
    CALLS.LtTensor(drawn, converted(probability, FLOAT32), truth)
    CALLS.InplaceCopy(out, truth)
    return out


@composed("bernoulli.Tensor/inplace")
def bernoulli_tensor(self: NpuArray, p: Any, generator: Any) -> NpuArray:
    """1 with the probabilities in a tensor."""
    return _below(self, placed(p, self), generator)


@composed("bernoulli.p")
def bernoulli_p(self: NpuArray, p: float, generator: Any) -> NpuArray:
    """A new tensor that is 1 with one probability."""
    out = like(self)
    CALLS.InplaceBernoulli(out, float(p), *draw(generator))
    return out


def _normal(mean: Any, std: Any, generator: Any, beside: NpuArray) -> NpuArray:
    shape = broadcast_shapes(*[v.shape for v in (mean, std) if isinstance(v, NpuArray)])
    out = new(beside, shape)
    CALLS.InplaceNormal(out, 0.0, 1.0, *draw(generator))
    for call, by_number, value in ((CALLS.InplaceMul, CALLS.InplaceMuls, std),
                                   (lambda a, b: CALLS.InplaceAdd(a, b, 1), lambda a, b: CALLS.InplaceAdds(a, b, 1),
                                    mean)):
        (call if isinstance(value, NpuArray) else by_number)(out, value)
    return out


@composed("normal.Tensor_float", "normal.Tensor_Tensor")
def normal_tensor(mean: NpuArray, std: Any, generator: Any) -> NpuArray:
    """Normal numbers around each element."""
    return _normal(mean, std, generator, mean)


@composed("normal.float_Tensor")
def normal_number(mean: float, std: NpuArray, generator: Any) -> NpuArray:
    """Normal numbers with each element's deviation."""
    return _normal(mean, std, generator, std)


@composed("exponential/inplace")
def exponential(self: NpuArray, lambd: float, generator: Any) -> NpuArray:
    """Exponential numbers: logarithms of uniform ones."""
    seed, offset = draw(generator)
    drawn, logarithm = like(self), like(self)
    tiny = float(np.finfo(np.float32).tiny)
    CALLS.InplaceUniform(drawn, tiny, 1.0, seed & 0xFFFF_FFFF_FFFF_FFFF, offset)
    CALLS.Log(drawn, logarithm)
    CALLS.InplaceMuls(logarithm, -1.0 / lambd)
    CALLS.InplaceCopy(self, logarithm)
    return self


@composed("multinomial")
def multinomial(self: NpuArray, num_samples: int, replacement: bool, generator: Any) -> NpuArray:
    """Positions drawn by weights: the largest of weights divided by exponential numbers."""
    check_multinomial_shape(self, num_samples, replacement)
    if replacement and num_samples > 1:
        columns = [multinomial(self, 1, False, generator) for _ in range(num_samples)]
        return cat(columns, self.ndim - 1)
    noise, ratio = new(self, self.shape), new(self, self.shape)
    exponential(noise, 1.0, generator)
    CALLS.Div(self, noise, ratio)
    return topk(ratio, num_samples, -1, True, True)[1]
