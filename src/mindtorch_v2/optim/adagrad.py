"""Adagrad."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import (
    ParameterOptimizer,
    check_fused,
    check_lr,
    check_not_negative,
    column,
    count_step,
    decayed_lists,
    functional_forms,
    number,
    scalar_dtype,
    sparse_like,
    uncount_skipped,
    zero_step,
)

__getattr__ = functional_forms(__name__)


class Adagrad(ParameterOptimizer):
    """Adagrad: steps scaled by the sum of all squared gradients so far."""

    late_options: ClassVar[dict[str, Any]] = {
        "maximize": False, "foreach": None, "differentiable": False, "fused": None,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        check_lr(lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        })
        if fused:
            check_fused(self)
        # Unlike in other optimizers, the state is there before the first step.
        for group in self.param_groups:
            for parameter in group["params"]:
                self.start(self.state[parameter], parameter, parameter, group)

    def share_memory(self) -> None:
        """Move the sums of squares to memory that other processes share."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"].share_memory_()

    def takes_sparse(self, group: dict[str, Any]) -> bool:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        return not group["foreach"] and not group["fused"]

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        value = group["initial_accumulator_value"]
        state["step"] = (aten.zeros((), dtype=scalar_dtype(), device=parameter.device) if group["fused"]
                         else zero_step())
        state["sum"] = aten.full_like(parameter, complex(value, value) if parameter.dtype.is_complex else value)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        aten.add_(state["step"], 1)
        count = state["step"].item()
        if group["maximize"]:
            grad = aten.neg(grad)
        if group["weight_decay"] != 0:
            grad = aten.add(grad, parameter, alpha=group["weight_decay"])
        rate = group["lr"] / (1 + (count - 1) * group["lr_decay"])
        if grad.is_sparse:
            grad = aten.coalesce(grad)
            values = aten._values(grad)
            aten.add_(state["sum"], sparse_like(grad, aten.pow(values, 2)))
            deviation = aten.add_(aten.sqrt_(aten._values(aten.sparse_mask(state["sum"], grad))), group["eps"])
            aten.add_(parameter, sparse_like(grad, aten.div(values, deviation)), alpha=number(-rate))
            return
        aten.addcmul_(state["sum"], grad, grad, value=1)
        deviation = aten.sqrt(state["sum"])
        deviation = aten.add(deviation, group["eps"]) if group["differentiable"] else \
            aten.add_(deviation, group["eps"])
        aten.addcdiv_(parameter, grad, deviation, value=number(-rate))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        count_step(states)
        grads = decayed_lists(parameters, grads, group["weight_decay"], fresh)
        fresh = fresh or group["weight_decay"] != 0
        lr = number(group["lr"])
        rates = [-lr / (1 + (state["step"].item() - 1) * group["lr_decay"]) for state in states]
        sums = column(states, "sum")
        aten._foreach_addcmul_(sums, grads, grads, value=1)
        deviations = aten._foreach_sqrt(sums)
        aten._foreach_add_(deviations, group["eps"])
        if fresh:
            aten._foreach_mul_(grads, rates)
        else:
            grads = list(aten._foreach_mul(grads, rates))
        aten._foreach_addcdiv_(parameters, grads, deviations)

    def update_fused(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        steps = column(states, "step")
        aten._foreach_add_(steps, 1)
        found_inf = getattr(self, "found_inf", None)
        aten._fused_adagrad_(
            parameters, grads, column(states, "sum"), steps, lr=number(group["lr"]), lr_decay=group["lr_decay"],
            weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"],
            grad_scale=getattr(self, "grad_scale", None), found_inf=found_inf,
        )
        uncount_skipped(steps, found_inf)
