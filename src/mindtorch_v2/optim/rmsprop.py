"""RMSprop."""

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
    kept,
    number,
    scalar_dtype,
)

__getattr__ = functional_forms(__name__)


class RMSprop(ParameterOptimizer):
    """RMSprop: steps scaled by a running average of squared gradients."""

    late_options: ClassVar[dict[str, Any]] = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False,
        "capturable": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = aten.zeros((), dtype=scalar_dtype())
        state["square_avg"] = aten.zeros_like(parameter)
        if group["momentum"] > 0:
            state["momentum_buffer"] = aten.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = aten.zeros_like(parameter)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        if group["weight_decay"] != 0:
            grad = aten.add(grad, parameter, alpha=group["weight_decay"])
        alpha, square = group["alpha"], state["square_avg"]
        aten.mul_(square, alpha)
        aten.addcmul_(square, grad, grad, value=1 - alpha)
        if group["centered"]:
            average = kept(aten.lerp_(state["grad_avg"], grad, 1 - alpha), group)
            deviation = aten.sqrt_(aten.addcmul(square, average, average, value=-1))
        else:
            deviation = aten.sqrt(square)
        # sqrt's derivative needs its result, so a differentiable step adds to a copy.
        deviation = (aten.add if group["differentiable"] else aten.add_)(deviation, group["eps"])
        if group["momentum"] > 0:
            buffer = aten.mul_(state["momentum_buffer"], group["momentum"])
            aten.addcdiv_(buffer, grad, deviation)
            aten.add_(parameter, buffer, alpha=number(-group["lr"]))
        else:
            aten.addcdiv_(parameter, grad, deviation, value=number(-group["lr"]))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        count_step(states)
        grads = decayed_lists(parameters, grads, group["weight_decay"], fresh)
        alpha, squares = group["alpha"], column(states, "square_avg")
        aten._foreach_mul_(squares, alpha)
        aten._foreach_addcmul_(squares, grads, grads, value=1 - alpha)
        if group["centered"]:
            averages = column(states, "grad_avg")
            aten._foreach_lerp_(averages, grads, 1 - alpha)
            deviations = aten._foreach_addcmul(squares, averages, averages, value=-1)
            aten._foreach_sqrt_(deviations)
        else:
            deviations = aten._foreach_sqrt(squares)
        aten._foreach_add_(deviations, group["eps"])
        if group["momentum"] > 0:
            buffers = column(states, "momentum_buffer")
            aten._foreach_mul_(buffers, group["momentum"])
            aten._foreach_addcdiv_(buffers, grads, deviations)
            aten._foreach_add_(parameters, buffers, alpha=number(-group["lr"]))
        else:
            aten._foreach_addcdiv_(parameters, grads, deviations, value=number(-group["lr"]))
