"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._dtype import finfo
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower factors L of correlation matrices with density proportional to det(L Lᵀ) ** (concentration - 1)."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    expanded: ClassVar[Any] = {"concentration": 0}

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row i below the diagonal is a beta number.
        before = aten.cat([aten.zeros(1, dtype=self.concentration.dtype, device=self.concentration.device),
                           aten.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)])
        first = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(before + 0.5, first.unsqueeze(-1) - 0.5 * before)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        """Row by row: a direction at random, and its length from the beta distribution (the onion method)."""
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            rows = public.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
            rows = rows / rows.norm(dim=-1, keepdim=True)
            rows[..., 0, :] = 0.0  # the first row has nothing below the diagonal
            below = aten.sqrt(squares) * rows
            rest = aten.clamp(1 - (below**2).sum(-1), min=finfo(below.dtype).tiny)
            return below + aten.diag_embed(aten.sqrt(rest))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = aten.diagonal(value, 0, -2, -1)[..., 1:]
        rows = aten.arange(2, self.dim + 1, device=value.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + (self.dim - rows)
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        normaliser = (0.5 * count * math.log(math.pi) + aten.mvlgamma(alpha - 0.5, count)
                      - count * aten.lgamma(alpha))
        return (powers * diagonal.log()).sum(-1) - normaliser
