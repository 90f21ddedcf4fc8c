"""Losses that ask for a margin between classes."""

from __future__ import annotations

from typing import Any

from ..._backends.cpu.margin import check_margin
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from . import formula

NONE, MEAN = 0, 1


def _missed(self: Tensor, target: Tensor, margin: Any) -> tuple[Tensor, Tensor]:
    """By how much each other class comes too near to the true one, and where the true ones are."""
    rows, true = self.reshape(-1, self.shape[-1] if self.dim() else 1), target.reshape(-1, 1)
    missed = (rows - rows.gather(1, true) + margin).clamp(min=0)
    return missed.scatter(1, true, 0), true


@formula("multi_margin_loss")
def multi_margin_loss(self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None,
                      reduction: int) -> Tensor:
    """The hinge loss of the true class against each other class."""
    check_margin(self._a, target._a, p, None if weight is None else weight._a)
    missed, true = _missed(self, target, margin)
    losses = (missed if p == 1 else missed * missed).sum(1) / missed.shape[1]
    if weight is not None:
        losses = losses * weight.reshape(-1)[true[:, 0]]
    if reduction == NONE:
        return losses.reshape(target.shape)
    return losses.mean() if reduction == MEAN else losses.sum()


@formula("multi_margin_loss_backward")
def multi_margin_loss_backward(grad: Tensor, self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None,
                               reduction: int) -> Tensor:
    """Every class that came too near is pushed away, and the true one towards them."""
    missed, true = _missed(self, target, margin)
    slopes = ((missed > 0).to(missed.dtype) if p == 1 else 2 * missed) / missed.shape[1]
    if weight is not None:
        slopes = slopes * weight.reshape(-1)[true[:, 0]].unsqueeze(1)
    slopes = slopes.scatter(1, true, -slopes.sum(1, True))
    if reduction == MEAN:
        slopes = slopes / slopes.shape[0]
    return (slopes * grad.reshape(-1, 1)).reshape(self.shape)


def _listed(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, a row a sample; the classes that rows list up to their first -1; which of these count; what is true."""
    rows, listed = (one.reshape(-1, self.shape[-1] if self.dim() else 1) for one in (self, target))
    counts = aten.eq((listed < 0).long().cumsum(1), 0)
    true = listed.clamp(min=0)
    is_true = aten.zeros_like(rows).scatter_add(1, true, counts.to(rows.dtype)) > 0
    return rows, true, counts, is_true


def _near(rows: Tensor, true: Tensor, counts: Tensor, is_true: Tensor) -> Tensor:
    """By how much each other class comes too near to each listed one."""
    missed = (1 - rows.gather(1, true).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    return missed * aten.logical_and(counts.unsqueeze(2), aten.logical_not(is_true).unsqueeze(1)).to(rows.dtype)


@formula("multilabel_margin_loss_forward")
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The hinge loss of all true classes against all others."""
    if self.dim() > 2 or target.shape != self.shape:
        raise ValueError("wrong arguments of multilabel_margin_loss")  # the CPU's kernel explains it
    rows, true, counts, is_true = _listed(self, target)
    losses = _near(rows, true, counts, is_true).sum((1, 2)) / rows.shape[1]
    flags = is_true.to(self.dtype).reshape(self.shape)
    if reduction == NONE:
        return losses if self.dim() > 1 else losses.reshape(()), flags
    return losses.mean() if reduction == MEAN else losses.sum(), flags


@formula("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(grad: Tensor, self: Tensor, target: Tensor, reduction: int,
                                    is_target: Tensor) -> Tensor:
    """Its gradient."""
    rows, true, counts, is_true = _listed(self, target)
    pushed = (_near(rows, true, counts, is_true) > 0).to(rows.dtype)
    slopes = pushed.sum(1).scatter_add(1, true, -pushed.sum(2)) / rows.shape[1]
    if reduction == MEAN:
        slopes = slopes / slopes.shape[0]
    return (slopes * grad.reshape(-1, 1)).reshape(self.shape)
