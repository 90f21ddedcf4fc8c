"""Adam and AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import (
    ParameterOptimizer,
    check_betas,
    check_fused,
    check_lr,
    check_not_negative,
    column,
    count_step,
    decayed_lists,
    functional_forms,
    kept,
    number,
    scalar_dtype,
    uncount_skipped,
    zero_step,
)

__getattr__ = functional_forms(__name__)


class Adam(ParameterOptimizer):
    """Adam: steps scaled by running averages of gradients and of their squares.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([weight], lr=0.1)
    >>> weight.grad = torch.tensor([1.0, -3.0])
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.9000, 2.1000])
    """

    late_options: ClassVar[dict[str, Any]] = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "fused": None, "decoupled_weight_decay": False,
    }
    sparse_message = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        check_lr(lr, foreach=foreach, capturable=capturable)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        kinds = [isinstance(beta, Tensor) for beta in betas]
        if kinds[0] != kinds[1]:
            raise ValueError("betas must be either both floats or both Tensors")
        for index in (0, 1):
            if kinds[index]:
                if not capturable and foreach:
                    raise ValueError(
                        f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
                    )
                if betas[index].numel() != 1:
                    raise ValueError(f"Tensor betas[{index}] must be 1-element")
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        })
        if fused:
            check_fused(self)

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state["step"] = aten.zeros((), dtype=scalar_dtype()) if group["fused"] else zero_step()
        state["exp_avg"] = aten.zeros_like(parameter)
        state["exp_avg_sq"] = aten.zeros_like(parameter)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = aten.zeros_like(parameter)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        step_count, average, square = state["step"], state["exp_avg"], state["exp_avg_sq"]
        aten.add_(step_count, 1)
        lr, weight_decay = group["lr"], group["weight_decay"]
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                aten.mul_(parameter, 1 - lr * weight_decay)
            else:
                grad = aten.add(grad, parameter, alpha=weight_decay)
        beta1, beta2 = number(group["betas"][0]), number(group["betas"][1])
        aten.lerp_(average, grad, 1 - beta1)
        aten.mul_(square, beta2)
        aten.addcmul_(square, grad, grad, value=1 - beta2)
        count = step_count.item()
        step_size = lr / (1 - beta1**count)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            if group["differentiable"]:
                square = aten.maximum(kept(largest, group), kept(square, group))
                aten.copy_(largest, square)
            else:
                square = aten.maximum(largest, square, out=largest)
        denominator = aten.div(aten.sqrt(square), (1 - beta2**count) ** 0.5)
        aten.add_(denominator, group["eps"])
        if isinstance(step_size, Tensor) and step_size.requires_grad:
            aten.addcdiv_(parameter, kept(average, group) * step_size, denominator, value=-1)
        else:
            aten.addcdiv_(parameter, kept(average, group), denominator, value=number(-step_size))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        averages, squares = column(states, "exp_avg"), column(states, "exp_avg_sq")
        count_step(states)
        lr, weight_decay = number(group["lr"]), group["weight_decay"]
        if weight_decay != 0 and group["decoupled_weight_decay"]:
            aten._foreach_mul_(parameters, 1 - lr * weight_decay)
        else:
            grads = decayed_lists(parameters, grads, weight_decay, fresh)
        beta1, beta2 = group["betas"]
        aten._foreach_lerp_(averages, grads, 1 - beta1)
        aten._foreach_mul_(squares, beta2)
        aten._foreach_addcmul_(squares, grads, grads, 1 - beta2)
        first = [1 - beta1 ** state["step"].item() for state in states]
        second = [1 - beta2 ** state["step"].item() for state in states]
        if group["amsgrad"]:
            largest = column(states, "max_exp_avg_sq")
            aten._foreach_maximum_(largest, squares)
            squares = largest
        denominators = aten._foreach_sqrt(squares)
        aten._foreach_div_(denominators, [correction**0.5 for correction in second])
        aten._foreach_add_(denominators, group["eps"])
        aten._foreach_addcdiv_(parameters, averages, denominators, [-(lr / correction) for correction in first])

    def update_fused(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        steps = column(states, "step")
        aten._foreach_add_(steps, 1)
        found_inf = getattr(self, "found_inf", None)
        fused = aten._fused_adamw_ if group["decoupled_weight_decay"] else aten._fused_adam_
        fused(
            parameters, grads, column(states, "exp_avg"), column(states, "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if group["amsgrad"] else [], steps, lr=number(group["lr"]),
            beta1=number(group["betas"][0]), beta2=number(group["betas"][1]), weight_decay=group["weight_decay"],
            eps=group["eps"], amsgrad=group["amsgrad"], maximize=group["maximize"],
            grad_scale=getattr(self, "grad_scale", None), found_inf=found_inf,
        )
        uncount_skipped(steps, found_inf)


class AdamW(Adam):
    """Adam with weight decay applied to the parameters rather than added to the gradients."""

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
