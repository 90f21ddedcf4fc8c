"""`torch.quasirandom`: Sobol sequences, points that fill a cube more evenly than random ones.

The direction numbers of Joe and Kuo come from SciPy, which is not needed for anything else: a program that draws such
points installs it.
"""

from __future__ import annotations

from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from ._construct import tensor
from ._device import CPU
from ._dispatch.namespace import aten
from ._dtype import DType, get_default_dtype, int64
from ._random import Generator
from ._tensor import Tensor

__all__ = ["SobolEngine"]

Integers: TypeAlias = npt.NDArray[np.int64]


def _missing(error: ImportError | AttributeError) -> NoReturn:
    raise NotImplementedError("SobolEngine takes its direction numbers from SciPy, which is not installed or of a "
                              "version that does not have them: pip install 'scipy>=1.9'") from error


def _direction_numbers(dimension: int, bits: int) -> Integers:
    """For each dimension and bit the number that the bit adds to a point."""
    try:
        from scipy.stats import qmc

        return np.asarray(qmc.Sobol(dimension, scramble=False, bits=bits)._sv, np.int64)
    except (ImportError, AttributeError) as error:
        _missing(error)


def _scrambled(numbers: Integers, matrices: Integers) -> Integers:
    """Direction numbers as bits, highest first, multiplied by a matrix of bits for each dimension."""
    bits = numbers.shape[1]
    places = np.arange(bits - 1, -1, -1)
    vectors = numbers[:, None, :] >> places[None, :, None] & 1
    return np.einsum("dpj,p->dj", matrices @ vectors & 1, 1 << places)


class SobolEngine:
    """Points of a Sobol sequence in [0, 1), in the order of PyTorch's, scrambled if wanted.

    Needs SciPy. `draw(n)` gives the next n points, `fast_forward(n)` skips them, `reset()` starts again.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        numbers = _direction_numbers(dimension, self.MAXBIT)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            generator = None if seed is None else Generator().manual_seed(seed)
            drawn = aten.randint(2, (dimension, self.MAXBIT), generator=generator, device=CPU)
            shift = (drawn.numpy() << np.arange(self.MAXBIT)).sum(1)
            matrices = aten.randint(2, (dimension, self.MAXBIT, self.MAXBIT), generator=generator, device=CPU)
            matrices = matrices.tril().numpy()
            matrices |= np.eye(self.MAXBIT, dtype=np.int64)
            numbers = _scrambled(numbers, matrices)
        self.sobolstate = tensor(numbers, dtype=int64, device=CPU)
        self.shift = tensor(shift, dtype=int64, device=CPU)
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _points(self, n: int) -> Integers:
        """The next n points as integers. Each differs from the one before it by one direction number."""
        first = 1 if self.num_generated == 0 else 0  # the first point of all is the shift itself
        counts = np.arange(self.num_generated - 1 + first, self.num_generated - 1 + n)
        lowest_zero = np.log2(~counts & (counts + 1)).astype(np.int64)
        steps = np.concatenate([self.quasi.numpy()[None], self.sobolstate.numpy()[:, lowest_zero].T])
        points: Integers = np.bitwise_xor.accumulate(steps)
        self.quasi = tensor(points[-1], dtype=int64, device=CPU)
        self.num_generated += n
        return points if first else points[1:]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next n points, one per row."""
        kind = get_default_dtype() if dtype is None else dtype
        points = self._points(n) if n else np.empty((0, self.dimension))
        drawn = tensor(points, dtype=kind, device=CPU) / 2**self.MAXBIT
        return drawn if out is None else out.resize_(drawn.shape).copy_(drawn)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points; the number of all points drawn must be a power of two afterwards."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError("The balance properties of Sobol' points require n to be a power of 2: there would be "
                             f"{total} points in all, {self.num_generated} of them drawn before. draw() takes any n.")
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start with the first point again."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip the next n points."""
        if n:
            self._points(n)
        return self

    def __repr__(self) -> str:
        said = [f"dimension={self.dimension}"]
        if self.scramble:
            said.append("scramble=True")
        if self.seed is not None:
            said.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(said)})"
