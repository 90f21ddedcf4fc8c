"""Losses made of other ops."""

from __future__ import annotations

import math
from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor
from .loss import MEAN, NONE, SUM, reduced


def _check_smoothing(label_smoothing: float) -> None:
    """Too much of it is refused; less than nothing is taken as none."""
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")


def _by_class(weight: Tensor, ndim: int, class_dim: int) -> Tensor:
    """Class weights shaped so that they broadcast along the class dimension."""
    return aten.view(weight, [-1 if d == class_dim else 1 for d in range(ndim)])


def _from_probabilities(scores: Tensor, target: Tensor, weight: Tensor | None, reduction: int, class_dim: int,
                        smoothing: float) -> Tensor:
    classes = scores._a.shape[class_dim]
    if smoothing > 0:
        target = aten.add(aten.mul__Scalar(target, 1 - smoothing), smoothing / classes)
    losses = aten.mul(scores, target)
    if weight is not None:
        losses = aten.mul(losses, _by_class(weight, scores.ndim, class_dim))
    if reduction == NONE:
        return aten.neg(aten.sum(losses, (class_dim,), False))
    total = aten.neg(aten.sum(losses))
    return aten.div__Scalar(total, scores._a.size / classes if classes else math.nan) if reduction == MEAN else total


def _smoothed(scores: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
              class_dim: int, smoothing: float) -> Tensor:
    exact = aten.nll_loss_nd(scores, target, weight, reduction, ignore_index)
    spread = scores if weight is None else aten.mul(scores, _by_class(weight, scores.ndim, class_dim))
    even = aten.neg(aten.sum(spread, (class_dim,), False))
    ignored = aten.eq(target, ignore_index)
    even = aten.masked_fill_(even, ignored, 0.0)
    if reduction == MEAN:
        counted = aten.bitwise_not(ignored)
        if weight is None:
            even = aten.div(aten.sum(even), aten.sum(counted))
        else:
            chosen = aten.flatten(aten.masked_select(target, counted))
            even = aten.div(aten.sum(even), aten.sum(aten.index_select(weight, 0, chosen)))
    elif reduction == SUM:
        even = aten.sum(even)
    share = smoothing / scores._a.shape[class_dim]
    return aten.add(aten.mul__Scalar(exact, 1 - smoothing), aten.mul__Scalar(even, share))


def _check_weight(self: Tensor, weight: Tensor | None, class_dim: int) -> None:
    if weight is not None and weight._a.shape != (self._a.shape[class_dim],):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {self._a.shape[class_dim]} classes or no "
            f"classes but got weight tensor of shape: {list(weight._a.shape)}")


def _cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
                   label_smoothing: float) -> Tensor:
    class_dim = 0 if self.ndim == 1 else 1
    if self._a.shape == target._a.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               f"{'Long' if target.dtype.name == 'int64' else target.dtype.name}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        _check_smoothing(label_smoothing)
        _check_weight(self, weight, class_dim)
        scores = aten.log_softmax(self, class_dim, self.dtype)
        return _from_probabilities(scores, target, weight, reduction, class_dim, label_smoothing)
    _check_smoothing(label_smoothing)
    _check_weight(self, weight, class_dim)
    scores = aten.log_softmax(self, class_dim, self.dtype)
    if label_smoothing > 0:
        return _smoothed(scores, target, weight, reduction, ignore_index, class_dim, label_smoothing)
    return aten.nll_loss_nd(scores, target, weight, reduction, ignore_index)


declare("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100, "
        "float label_smoothing=0.) -> Tensor", composite=_cross_entropy, where="n")
declare("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", where="n",
        composite=lambda self, target, reduction: reduced(aten.abs(aten.sub(self, target)), reduction))


def _kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    if not (self.is_floating_point() and target.is_floating_point()):
        of = "Complex" if self.is_complex() or target.is_complex() else "Integral"
        raise RuntimeError(f"kl_div: {of} inputs not supported.")
    if log_target:
        gap = aten.sub(target, self)
        losses = aten.mul(aten.exp(target), gap)
    else:
        expected = aten.mul(target, self)
        losses = aten.sub(aten.xlogy(target, target), expected)
    return reduced(losses, reduction)


declare("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", composite=_kl_div,
        where="f")


def _hinge_embedding(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = aten.zeros_like(self)
    below = aten.clamp_min_(aten.sub(aten.full_like(self, margin), self), 0)
    losses = aten.add(aten.where(aten.ne(target, 1), below, zeros), aten.where(aten.ne(target, -1), self, zeros))
    return reduced(losses, reduction)


declare("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
        composite=_hinge_embedding, where="f")


def _margin_ranking(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    difference = aten.sub(input1, input2)
    gap = aten.mul(aten.neg(target), difference)
    return reduced(aten.clamp_min_(aten.add__Scalar(gap, margin), 0), reduction)


declare("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
        composite=_margin_ranking, where="f")


def _cosine_embedding(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    rank = target.ndim
    if rank not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if rank + 1 != input1.ndim or rank + 1 != input2.ndim:
        raise RuntimeError(
            f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes "
            f"{list(input1._a.shape)} and {list(input2._a.shape)}.")
    tiny = 1e-12

    def along(x: Tensor) -> Tensor:
        return aten.sum(x, (rank,), False)

    product = along(aten.mul(input1, input2))
    size1 = aten.add__Scalar(along(aten.mul(input1, input1)), tiny)
    size2 = aten.add__Scalar(along(aten.mul(input2, input2)), tiny)
    cosine = aten.div(product, aten.sqrt_(aten.mul(size1, size2)))
    zeros = aten.zeros_like(cosine)
    alike = aten.sub(aten.ones_like(cosine), cosine)
    unlike = aten.clamp_min_(aten.sub__Scalar(cosine, margin), 0)
    alike = aten.where(aten.eq(target, 1), alike, zeros)
    unlike = aten.where(aten.eq(target, -1), unlike, zeros)
    return reduced(aten.add(alike, unlike), reduction)


declare("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
        "Tensor", composite=_cosine_embedding, where="f")


def _triplet_margin(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float,
                    swap: bool, reduction: int) -> Tensor:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")
    if margin <= 0:
        raise RuntimeError(f"margin must be greater than 0, got {margin}")
    near = aten.pairwise_distance(anchor, positive, p, eps)
    far = aten.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.minimum(far, aten.pairwise_distance(positive, negative, p, eps))
    return reduced(aten.clamp_min(aten.sub(aten.add__Scalar(near, margin), far), 0), reduction)


declare("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
        "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor", composite=_triplet_margin, where="f")


def _poisson_nll(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    if not isinstance(target, Tensor):
        raise TypeError("poisson_nll_loss(): argument 'target' (position 2) must be Tensor, not "
                        f"{type(target).__name__}")
    if log_input:
        product = aten.mul(target, input)
        losses = aten.sub(aten.exp(input), product)
    else:
        losses = aten.sub(input, aten.mul(target, aten.log(aten.add__Scalar(input, eps))))
    if full:
        # Stirling's approximation of the logarithm of the factorial.
        rest = aten.mul__Scalar(aten.log(aten.mul__Scalar(target, 2 * math.pi)), 0.5)
        term = aten.add(aten.sub(aten.mul(target, aten.log(target)), target), rest)
        losses = aten.add_(losses, aten.masked_fill(term, aten.le(target, 1), 0))
    return reduced(losses, reduction)


declare("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
        composite=_poisson_nll, where="f")


def _unreduced(name: str, position: int) -> None:
    """The function in the main namespace: unlike the op's, its `reduction` is 0 (none) unless given."""

    @choose(name, where="f")
    def face(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) <= position:
            kwargs.setdefault("reduction", NONE)
        return getattr(aten, f"{name}__default")(*args, **kwargs)

    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"The op `aten::{name}`; use `torch.nn.functional.{name}`."


for _name, _position in (("kl_div", 2), ("hinge_embedding_loss", 3), ("margin_ranking_loss", 4),
                         ("cosine_embedding_loss", 4), ("triplet_margin_loss", 7),
                         ("binary_cross_entropy_with_logits", 4)):
    _unreduced(_name, _position)
