"""Losses with a margin: hinge, ranking, embedding and triplet losses."""

from __future__ import annotations

from collections.abc import Callable

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ._reduction import get_enum, resolve
from ._refusing import refuse_gradient
from .loss import reduced


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """`input` where the target is 1, `max(0, margin - input)` where it is -1."""
    return aten.hinge_embedding_loss(input, target, margin, get_enum(resolve(size_average, reduce, reduction)))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """Zero where `input1` and `input2` are ordered as the sign of the target says, by at least `margin`."""
    number = get_enum(resolve(size_average, reduce, reduction))
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} ")
    return aten.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """Pulls vectors together (target 1) or apart (target -1) by their cosine."""
    number = get_enum(resolve(size_average, reduce, reduction))
    return aten.cosine_embedding_loss(input1, input2, target, margin, number)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-target * input))`."""
    refuse_gradient("soft_margin_loss", "target", target)
    return aten.soft_margin_loss(input, target, get_enum(resolve(size_average, reduce, reduction)))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The hinge loss of the true class against each other class."""
    number = get_enum(resolve(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    refuse_gradient("multi_margin_loss", "weight", weight)
    return aten.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The hinge loss of every true class against every other class."""
    number = get_enum(resolve(size_average, reduce, reduction))
    return aten.multilabel_margin_loss(input, target, number)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """Binary cross entropy of each class, averaged over the classes."""
    reduction = resolve(size_average, reduce, reduction)
    present = aten.mul(target, aten.log_sigmoid(input))
    absent = aten.mul(aten.rsub(target, 1), aten.log_sigmoid(aten.neg(input)))
    loss = aten.neg(aten.add(present, absent))
    if weight is not None:
        loss = aten.mul(loss, weight)
    return reduced(aten.div(aten.sum(loss, input.ndim - 1), input._a.shape[-1]), reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """The anchor must be nearer to `positive` than to `negative` by `margin`."""
    number = get_enum(resolve(size_average, reduce, reduction))
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with a distance of your own."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
                           f"{negative.ndim}D inputs")
    distance = aten.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = aten.minimum(far, distance(positive, negative))
    return reduced(aten.clamp_min(aten.sub(aten.add(near, margin), far), 0), reduction)
