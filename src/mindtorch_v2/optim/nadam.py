"""NAdam."""

from __future__ import annotations

from typing import Any, ClassVar

from .._construct import tensor
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
    scalar_dtype,
    zero_step,
)

__getattr__ = functional_forms(__name__)


class NAdam(ParameterOptimizer):
    """Adam with Nesterov momentum, whose strength grows towards `betas[0]` as steps go by."""

    late_options: ClassVar[dict[str, Any]] = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("momentum_decay value", momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = zero_step()
        state["mu_product"] = tensor(1.0, dtype=scalar_dtype())
        state["exp_avg"] = aten.zeros_like(parameter)
        state["exp_avg_sq"] = aten.zeros_like(parameter)

    @staticmethod
    def momentum(count: float, group: dict[str, Any]) -> float:
        """The strength of momentum at a step."""
        return group["betas"][0] * (1.0 - 0.5 * 0.96 ** (count * group["momentum_decay"]))

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        count = state["step"].item()
        lr, weight_decay = number(group["lr"]), group["weight_decay"]
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                aten.mul_(parameter, 1 - lr * weight_decay)
            else:
                grad = aten.add(grad, parameter, alpha=weight_decay)
        beta1, beta2 = group["betas"]
        now, following = self.momentum(count, group), self.momentum(count + 1, group)
        average, square, product = state["exp_avg"], state["exp_avg_sq"], state["mu_product"]
        aten.mul_(product, now)
        aten.lerp_(average, grad, 1 - beta1)
        aten.mul_(square, beta2)
        aten.addcmul_(square, grad, grad, value=1 - beta2)
        denominator = aten.sqrt(aten.div(square, 1 - beta2**count))
        product_next = product.item() * following
        denominator = (aten.add if group["differentiable"] else aten.add_)(denominator, group["eps"])
        aten.addcdiv_(parameter, grad, denominator, value=-lr * (1.0 - now) / (1.0 - product.item()))
        aten.addcdiv_(parameter, kept(average, group), denominator, value=(-lr * following) / (1.0 - product_next))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        count_step(states)
        lr, weight_decay = number(group["lr"]), group["weight_decay"]
        if weight_decay != 0 and group["decoupled_weight_decay"]:
            aten._foreach_mul_(parameters, 1 - lr * weight_decay)
        else:
            grads = decayed_lists(parameters, grads, weight_decay, fresh)
        beta1, beta2 = group["betas"]
        averages, squares, products = (column(states, key) for key in ("exp_avg", "exp_avg_sq", "mu_product"))
        aten._foreach_lerp_(averages, grads, 1 - beta1)
        aten._foreach_mul_(squares, beta2)
        aten._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        denominators = aten._foreach_sqrt(squares)
        corrections = [(1 - beta2 ** state["step"].item()) ** 0.5 for state in states]
        now = [self.momentum(state["step"].item(), group) for state in states]
        following = [self.momentum(state["step"].item() + 1, group) for state in states]
        aten._foreach_mul_(products, now)
        aten._foreach_div_(denominators, corrections)
        aten._foreach_add_(denominators, group["eps"])
        by_grad = [-lr * (1.0 - mu) / (1.0 - product.item()) for mu, product in zip(now, products, strict=True)]
        by_average = [-lr * mu / (1.0 - product.item() * mu) for mu, product in zip(following, products, strict=True)]
        aten._foreach_addcdiv_(parameters, grads, denominators, by_grad)
        aten._foreach_addcdiv_(parameters, averages, denominators, by_average)
