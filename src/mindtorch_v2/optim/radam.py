"""RAdam."""

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
    number,
    zero_step,
)

__getattr__ = functional_forms(__name__)


class RAdam(ParameterOptimizer):
    """Adam that takes plain momentum steps until its average of squares is reliable."""

    late_options: ClassVar[dict[str, Any]] = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["exp_avg"] = aten.zeros_like(parameter)
        state["exp_avg_sq"] = aten.zeros_like(parameter)

    @staticmethod
    def rectification(degrees: float, beta2: float) -> float:
        """How far the average of squares can be trusted: 0 for not at all, towards 1 as it has seen more."""
        limit = 2 / (1 - beta2) - 1
        if degrees <= 5.0:
            return 0.0
        return ((degrees - 4) * (degrees - 2) * limit / ((limit - 4) * (limit - 2) * degrees)) ** 0.5

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        count = state["step"].item()
        lr, weight_decay = group["lr"], group["weight_decay"]
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                aten.mul_(parameter, 1 - lr * weight_decay)
            else:
                grad = aten.add(grad, parameter, alpha=weight_decay)
        beta1, beta2 = group["betas"]
        average, square = state["exp_avg"], state["exp_avg_sq"]
        aten.lerp_(average, grad, 1 - beta1)
        aten.mul_(square, beta2)
        aten.addcmul_(square, grad, grad, value=1 - beta2)
        correction = 1 - beta2**count
        change = aten.mul(aten.div(average, 1 - beta1**count), lr)
        degrees = 2 / (1 - beta2) - 1 - 2 * count * beta2**count / correction
        rectification = self.rectification(degrees, beta2)
        if rectification:
            root = aten.sqrt(square)
            root = (aten.add if group["differentiable"] else aten.add_)(root, group["eps"])
            change = aten.mul(aten.mul(change, correction**0.5 / root), rectification)
        aten.add_(parameter, change, alpha=-1.0)

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        count_step(states)
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        beta1, beta2 = group["betas"]
        degrees = [2 / (1 - beta2) - 1 - 2 * state["step"].item() * beta2 ** state["step"].item()
                   / (1 - beta2 ** state["step"].item()) for state in states]
        lr, weight_decay = number(group["lr"]), group["weight_decay"]
        if weight_decay != 0 and group["decoupled_weight_decay"]:
            aten._foreach_mul_(parameters, 1 - lr * weight_decay)
        else:
            grads = decayed_lists(parameters, grads, weight_decay, fresh)
        averages, squares = column(states, "exp_avg"), column(states, "exp_avg_sq")
        aten._foreach_lerp_(averages, grads, 1 - beta1)
        aten._foreach_mul_(squares, beta2)
        aten._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        rectifications = [self.rectification(d, beta2) for d in degrees]
        rates = [lr / (1 - beta1 ** state["step"].item()) for state in states]
        roots = [(1 - beta2 ** state["step"].item()) ** 0.5 for state in states]
        # Where the square average is not trusted the first factor is -0, its share 1/inf, and the plain rate is left.
        scaled = [-root * rate * r for root, rate, r in zip(roots, rates, rectifications, strict=True)]
        plain = [0.0 if r else -rate for rate, r in zip(rates, rectifications, strict=True)]
        buffers = aten._foreach_sqrt(squares)
        aten._foreach_add_(buffers, group["eps"])
        aten._foreach_div_(buffers, scaled)
        aten._foreach_reciprocal_(buffers)
        aten._foreach_add_(buffers, plain)
        aten._foreach_addcmul_(parameters, averages, buffers)
