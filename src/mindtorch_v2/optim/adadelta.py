"""Adadelta."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import (
    ParameterOptimizer,
    check_lr,
    check_not_negative,
    column,
    count_step,
    decayed_lists,
    functional_forms,
    number,
    scalar_dtype,
)

__getattr__ = functional_forms(__name__)


class Adadelta(ParameterOptimizer):
    """Adadelta: steps scaled by the ratio of running averages of squared steps and squared gradients."""

    late_options: ClassVar[dict[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = aten.zeros((), dtype=scalar_dtype())
        state["square_avg"] = aten.zeros_like(parameter)
        state["acc_delta"] = aten.zeros_like(parameter)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        aten.add_(state["step"], 1)
        if group["maximize"]:
            grad = aten.neg(grad)
        if group["weight_decay"] != 0:
            grad = aten.add(grad, parameter, alpha=group["weight_decay"])
        rho, eps = group["rho"], group["eps"]
        square, accumulated = state["square_avg"], state["acc_delta"]
        aten.mul_(square, rho)
        aten.addcmul_(square, grad, grad, value=1 - rho)
        deviation = aten.sqrt_(aten.add(square, eps))
        delta = aten.sqrt_(aten.add(accumulated, eps))
        if group["differentiable"]:
            delta = delta.clone()
        aten.mul_(aten.div_(delta, deviation), grad)
        aten.mul_(accumulated, rho)
        aten.addcmul_(accumulated, delta, delta, value=1 - rho)
        aten.add_(parameter, delta, alpha=number(-group["lr"]))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        count_step(states)
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        grads = decayed_lists(parameters, grads, group["weight_decay"], fresh)
        rho, eps = group["rho"], group["eps"]
        squares, accumulated = column(states, "square_avg"), column(states, "acc_delta")
        aten._foreach_mul_(squares, rho)
        aten._foreach_addcmul_(squares, grads, grads, value=1 - rho)
        deviations = aten._foreach_add(squares, eps)
        aten._foreach_sqrt_(deviations)
        deltas = aten._foreach_add(accumulated, eps)
        aten._foreach_sqrt_(deltas)
        aten._foreach_div_(deltas, deviations)
        aten._foreach_mul_(deltas, grads)
        aten._foreach_mul_(accumulated, rho)
        aten._foreach_addcmul_(accumulated, deltas, deltas, value=1 - rho)
        aten._foreach_add_(parameters, deltas, alpha=number(-group["lr"]))
