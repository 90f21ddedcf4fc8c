"""Adamax."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import (
    ParameterOptimizer,
    check_betas,
    check_lr,
    check_not_negative,
    column,
    count_step,
    decayed_lists,
    functional_forms,
    kept,
    number,
    zero_step,
)

__getattr__ = functional_forms(__name__)


class Adamax(ParameterOptimizer):
    """Adam with the largest recent gradient in place of the average of squares."""

    late_options: ClassVar[dict[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["exp_avg"] = aten.zeros_like(parameter)
        state["exp_inf"] = aten.zeros_like(parameter)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        if group["weight_decay"] != 0:
            grad = aten.add(grad, parameter, alpha=group["weight_decay"])
        beta1, beta2 = group["betas"]
        average, largest = state["exp_avg"], state["exp_inf"]
        aten.lerp_(average, grad, 1 - beta1)
        aten.mul_(largest, beta2)
        size = aten.add_(aten.abs(grad), group["eps"])
        if group["differentiable"]:
            aten.copy_(largest, aten.maximum(kept(largest, group), size))
        else:
            aten.maximum(largest, size, out=largest)
        rate = group["lr"] / (1 - beta1 ** state["step"].item())
        aten.addcdiv_(parameter, kept(average, group), kept(largest, group), value=number(-rate))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        count_step(states)
        grads = decayed_lists(parameters, grads, group["weight_decay"], fresh)
        fresh = fresh or group["weight_decay"] != 0
        beta1, beta2 = group["betas"]
        averages, largest = column(states, "exp_avg"), column(states, "exp_inf")
        aten._foreach_lerp_(averages, grads, 1 - beta1)
        aten._foreach_mul_(largest, beta2)
        if fresh:
            aten._foreach_abs_(grads)
        else:
            grads = list(aten._foreach_abs(grads))
        aten._foreach_add_(grads, group["eps"])
        aten._foreach_maximum_(largest, grads)
        lr = number(group["lr"])
        rates = [-lr / (1 - beta1 ** state["step"].item()) for state in states]
        aten._foreach_addcdiv_(parameters, averages, largest, rates)
