"""Distances between rows, and products of three."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch.namespace import aten
from ..._shape import wrap_dim
from ..._tensor import Tensor
from . import formula


@formula("_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norms of all differences of a row of one and a row of the other."""
    return aten.linalg_vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@formula("_euclidean_dist")
def euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    """The distances of all rows of one to all rows of the other."""
    return cdist(x1, x2, 2.0, None)


@formula("_cdist_backward")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distance: Tensor) -> Tensor:
    """The gradient for the first operand. A distance of zero gives none."""
    return _pulls(grad, x1.unsqueeze(-2) - x2.unsqueeze(-3), p, distance).sum(-2)


def _pulls(grad: Tensor, difference: Tensor, p: float, distance: Tensor) -> Tensor:
    """What each difference adds to the gradient of its first operand."""
    pull, distance = grad.unsqueeze(-1), distance.unsqueeze(-1)
    if p == 0:
        return aten.zeros_like(difference)
    if p == 1:
        return pull * difference.sign()
    if math.isinf(p):
        return pull * difference.sign() * aten.eq(difference.abs(), distance)
    slope = difference if p == 2 else difference.sign() * difference.abs().pow(p - 1)
    made = pull * slope / distance.pow(p - 1)
    return made.masked_fill(aten.logical_or(aten.eq(distance, 0), aten.eq(difference, 0)), 0)


def _pairs(x: Tensor) -> Tensor:
    """The numbers of the first and the second of all pairs of different rows."""
    return aten.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)


@formula("_pdist_forward")
def pdist(self: Tensor, p: float) -> Tensor:
    """The distances of all pairs of rows."""
    first, second = _pairs(self)
    return aten.linalg_vector_norm(self[first] - self[second], p, -1)


@formula("_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, distance: Tensor) -> Tensor:
    """Both rows of a pair are pulled, in opposite directions."""
    first, second = _pairs(self)
    pulls = _pulls(grad, self[first] - self[second], p, distance)
    return aten.zeros_like(self).index_add(0, first, pulls).index_add(0, second, -pulls)


@formula("dist")
def dist(self: Tensor, other: Tensor, p: Any) -> Tensor:
    """The norm of a difference."""
    return aten.linalg_vector_norm(self - other, p)


@formula("renorm")
def renorm(self: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Slices of a dimension with norms that have a bound."""
    if self.dim() < 2 or maxnorm < 0:
        raise ValueError("wrong arguments of renorm")  # the CPU's kernel explains it
    dim = wrap_dim(dim, self.dim())
    sizes = aten.linalg_vector_norm(self, p, [d for d in range(self.dim()) if d != dim], True)
    return self * aten.where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1.0).to(self.dtype)


@formula("embedding_renorm")
def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """A table of which the rows that are used have norms with a bound."""
    used = aten.zeros(self.shape[0], dtype=self.dtype, device=self.device).index_fill(0, indices.reshape(-1), 1)
    return aten.where(used.unsqueeze(1) > 0, renorm(self, norm_type, 0, max_norm), self)


@formula("linalg_cross")
def cross(self: Tensor, other: Tensor, dim: int) -> Tensor:
    """Vectors that stand on two others."""
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[dim]} and "
                           f"{other.shape[dim]}")
    self, other = aten.broadcast_tensors([self, other])
    return self.roll(-1, dim) * other.roll(-2, dim) - self.roll(-2, dim) * other.roll(-1, dim)


@formula("_trilinear")
def trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: list[int], expand2: list[int], expand3: list[int],
              sumdim: list[int], unroll_dim: int) -> Tensor:
    """The product of three tensors that are laid out over common dimensions, summed over some of them."""
    wide = []
    for operand, lacking in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for d in sorted(lacking):
            operand = operand.unsqueeze(d)
        wide.append(operand)
    made = wide[0] * wide[1] * wide[2]
    return made.sum(tuple(sumdim)) if sumdim else made


@formula("addbmm")
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """A tensor and the sum of products of matrices."""
    made = aten.bmm(batch1, batch2).sum(0) * alpha
    return made if beta == 0 else self * beta + made
