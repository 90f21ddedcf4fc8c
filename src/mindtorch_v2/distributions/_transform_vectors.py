"""Transforms that act on whole vectors or matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import finfo
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from ._transform import Transform
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class ReshapeTransform(Transform):
    """Events of shape `in_shape` as events of shape `out_shape`."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Tensors of the first shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Tensors of the second shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Any:
        return x.reshape((*x.shape[:x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Any:
        return y.reshape((*y.shape[:y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return aten.zeros(x.shape[:x.dim() - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def _changed(self, shape: Any, before: Size, after: Size) -> Any:
        if len(shape) < len(before):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != tuple(before):
            raise ValueError(f"Shape mismatch: expected {Size(shape[cut:])} but got {before}")
        return Size((*shape[:cut], *after))

    def forward_shape(self, shape: Any) -> Any:
        return self._changed(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._changed(shape, self.out_shape, self.in_shape)


class SoftmaxTransform(Transform):
    """Probabilities from unnormalised log-probabilities; not bijective, as a shift does not matter."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    def _inverse(self, y: Tensor) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class StickBreakingTransform(Transform):
    """K numbers to K+1 probabilities: each takes a share of what the ones before it left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = None

    @staticmethod
    def _offset(x: Tensor, size: int) -> Any:
        return size + 1 - aten.cumsum(x.new_ones(size), -1)

    def _call(self, x: Tensor) -> Any:
        info = finfo(x.dtype)
        share = aten.sigmoid(x - self._offset(x, x.shape[-1]).log())
        share = aten.clamp(share, min=info.tiny, max=1.0 - info.eps)
        left = (1 - share).cumprod(-1)
        return aten.pad(share, [0, 1], value=1) * aten.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Any:
        kept = y[..., :-1]
        offset = self._offset(y, kept.shape[-1])
        left = 1 - kept.cumsum(-1)
        left = aten.clamp(left, min=finfo(y.dtype).tiny)
        return kept.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        x = x - self._offset(x, x.shape[-1]).log()
        return (-x + aten.log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """A matrix to a lower triangle with positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return x.tril(-1) + aten.diagonal(x, 0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Any:
        return y.tril(-1) + aten.diagonal(y, 0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """A matrix to a positive definite one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        factor = LowerCholeskyTransform()(x)
        return aten.matmul(factor, factor.mT)

    def _inverse(self, y: Tensor) -> Any:
        return LowerCholeskyTransform().inv(aten.linalg_cholesky(y))


class CorrCholeskyTransform(Transform):
    """A vector of D(D-1)/2 numbers to the Cholesky factor of a D×D correlation matrix."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Any:
        eps = finfo(x.dtype).eps
        bounded = vec_to_tril_matrix(aten.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        squares = bounded**2
        # Each entry takes a share of the length that its row has left.
        left = (1 - squares).sqrt().cumprod(-1)
        identity = aten.eye(bounded.shape[-1], dtype=bounded.dtype, device=bounded.device)
        return (bounded + identity) * aten.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Any:
        left = 1 - aten.cumsum(y * y, -1)
        below = tril_matrix_to_vec(y, diag=-1)
        before = tril_matrix_to_vec(aten.pad(left[..., :-1], [1, 0], value=1), diag=-1)
        t = below / before.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Any:
        left = 1 - (y * y).cumsum(-1)
        rows = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        slopes = -2 * (x + aten.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return rows + slopes

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _Several(Transform):
    """Base of the two that treat parts of their input differently."""

    transforms: list[Any]

    def __init__(self, tseq: Sequence[Any], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(t.bijective for t in self.transforms)

    def check_length(self, z: Tensor, name: str, what: str, length: int) -> None:
        """The dimension is there, and has the length of all parts together."""
        if not -z.dim() <= self.dim < z.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {z.dim()} dimensions")
        if z.size(self.dim) != length:
            raise AssertionError(f"{name}.size({self.dim}) = {z.size(self.dim)} must equal {what}")


class CatTransform(_Several):
    """Transforms of parts of given lengths along a dimension."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor, name: str) -> Any:
        self.check_length(x, name, f"length {self.length}", self.length)
        return aten.split(x, self.lengths, self.dim)

    def _call(self, x: Tensor) -> Any:
        return aten.cat([t(part) for t, part in zip(self.transforms, self._parts(x, "x"))], self.dim)

    def _inverse(self, y: Tensor) -> Any:
        return aten.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        made = []
        for t, before, after in zip(self.transforms, self._parts(x, "x"), self._parts(y, "y"), strict=True):
            part = t.log_abs_det_jacobian(before, after)
            made.append(sum_rightmost(part, self.event_dim - t.event_dim))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        if dim < 0:
            return aten.cat(made, dim)
        total = made[0]
        for part in made[1:]:
            total = total + part
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        """The parts' domains."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The parts' codomains."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Several):
    """A transform for each index of a dimension."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, z: Any, name: str) -> list[Any]:
        count = len(self.transforms)
        self.check_length(z, name, f"len(transforms) {count}", count)
        return [z.select(self.dim, i) for i in range(count)]

    def _call(self, x: Tensor) -> Any:
        return aten.stack([t(part) for t, part in zip(self.transforms, self._parts(x, "x"))], self.dim)

    def _inverse(self, y: Tensor) -> Any:
        return aten.stack([t.inv(part) for t, part in zip(self.transforms, self._parts(y, "y"))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        triples = zip(self.transforms, self._parts(x, "x"), self._parts(y, "y"))
        return aten.stack([t.log_abs_det_jacobian(before, after) for t, before, after in triples], self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The parts' domains."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The parts' codomains."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
