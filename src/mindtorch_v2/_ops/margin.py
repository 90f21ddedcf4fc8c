"""Multi-class hinge losses."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import margin as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, not_implemented

declare(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) "
    "-> Tensor", cpu=kernels.multi_margin_loss, where="n",
    grad={"self": lambda grad, self, target, p, margin, weight, reduction: aten.multi_margin_loss_backward(
        grad, self, target, p, margin, weight, reduction)},
)
declare(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
    "Tensor? weight=None, int reduction=1) -> Tensor", cpu=kernels.multi_margin_loss_backward, where="n",
    node=NOT_IMPLEMENTED, grad={"grad_output": not_implemented("multi_margin_loss_backward"),
                                 "self": not_implemented("multi_margin_loss_backward")},
)
declare(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    cpu=kernels.multilabel_margin_loss, where="n", node="MultilabelMarginLossBackward0", differentiable=(0,),
    grad={"self": lambda grad, self, target, reduction, result1: aten.multilabel_margin_loss_backward(
        grad, self, target, reduction, result1)},
)
declare(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor", cpu=kernels.multilabel_margin_loss_backward, where="n", node=NOT_IMPLEMENTED,
    grad={"grad_output": not_implemented("multilabel_margin_loss_backward"),
          "self": not_implemented("multilabel_margin_loss_backward")},
)


def _multilabel(self: Tensor, target: Any, reduction: int) -> Any:
    return aten.multilabel_margin_loss_forward(self, target, reduction)[0]


declare("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", composite=_multilabel,
        where="n")
