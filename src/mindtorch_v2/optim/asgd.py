"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from .._construct import tensor
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


class ASGD(ParameterOptimizer):
    """Stochastic gradient descent that also keeps the average of the parameters, in the state's `ax`."""

    late_options: ClassVar[dict[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_lr(lr)
        check_not_negative("weight_decay value", weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        where = parameter.device
        state["step"] = aten.zeros((), dtype=scalar_dtype(), device=where)
        state["eta"] = aten.clone(tensor(number(group["lr"]), dtype=scalar_dtype(), device=where)).detach()
        state["mu"] = aten.ones((), dtype=scalar_dtype(), device=where)
        state["ax"] = aten.zeros_like(parameter)

    @staticmethod
    def weight(count: float, group: dict[str, Any]) -> float:
        """The share of the parameters in their average at the next step."""
        return 1 / max(1, count - group["t0"])

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        if group["weight_decay"] != 0:
            grad = aten.add(grad, parameter, alpha=group["weight_decay"])
        eta = state["eta"].item()
        aten.mul_(parameter, 1 - group["lambd"] * eta)
        aten.add_(parameter, grad, alpha=-eta)
        average = state["ax"]
        weight = state["mu"].item()
        if weight == 1:
            aten.copy_(average, parameter)
        else:
            aten.add_(average, aten.mul_(aten.sub(parameter, average), weight))
        count, lr = state["step"].item(), number(group["lr"])
        aten.copy_(state["eta"], tensor(lr / (1 + group["lambd"] * lr * count) ** group["alpha"]))
        aten.copy_(state["mu"], tensor(self.weight(count, group)))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        count_step(states)
        grads = decayed_lists(parameters, grads, group["weight_decay"], fresh)
        changes = decayed_lists(parameters, grads, group["lambd"], group["weight_decay"] != 0)
        etas, weights, averages = (column(states, key) for key in ("eta", "mu", "ax"))
        aten._foreach_addcmul_(parameters, changes, etas, value=-1)
        aten._foreach_addcmul_(averages, aten._foreach_sub(parameters, averages), weights)
        lr, lambd, alpha = number(group["lr"]), group["lambd"], group["alpha"]
        next_etas = [lr / (1 + lambd * lr * state["step"]) ** alpha for state in states]
        next_weights = [tensor(self.weight(state["step"].item(), group), device=state["mu"].device) for state in states]
        aten._foreach_copy_(etas, next_etas)
        aten._foreach_copy_(weights, next_weights)
