"""Stochastic gradient descent."""

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
    decayed_lists,
    functional_forms,
    number,
)

__getattr__ = functional_forms(__name__)


class SGD(ParameterOptimizer):
    """Stochastic gradient descent, with momentum if asked.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    >>> weight.grad = torch.tensor([1.0, 1.0])
    >>> optimizer.step()
    >>> weight.detach()
    tensor([0.9000, 1.9000])
    """

    late_options: ClassVar[dict[str, Any]] = {
        "nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": None,
    }
    complex_as_real = False

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        check_lr(lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach, "differentiable": differentiable,
            "fused": fused,
        })
        if fused:
            check_fused(self)

    def takes_sparse(self, group: dict[str, Any]) -> bool:
        return not group["fused"]

    def has_state(self, group: dict[str, Any]) -> bool:
        return group["momentum"] != 0

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        # The first buffer is the first gradient itself, which the update stores.
        return None

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = aten.neg(grad)
        weight_decay = group["weight_decay"]
        if isinstance(weight_decay, Tensor):
            grad = aten.addcmul(grad, parameter, weight_decay)
        elif weight_decay != 0:
            grad = aten.add(grad, parameter, alpha=weight_decay)
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = aten.clone(grad.detach())
            else:
                aten.mul_(buffer, momentum)
                aten.add_(buffer, grad, alpha=1 - group["dampening"])
            grad = aten.add(grad, buffer, alpha=momentum) if group["nesterov"] else buffer
        lr = group["lr"]
        if isinstance(lr, Tensor) and lr.requires_grad:
            aten.addcmul_(parameter, grad, lr, value=-1)
        else:
            aten.add_(parameter, grad, alpha=number(-lr))

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        fresh = group["maximize"]
        if fresh:
            grads = list(aten._foreach_neg(grads))
        grads = decayed_lists(parameters, grads, number(group["weight_decay"]), fresh)
        momentum = group["momentum"]
        if momentum != 0:
            buffers = self.buffers(grads, states, momentum, group["dampening"])
            if group["nesterov"]:
                # As in PyTorch, this changes the parameters' own gradients unless decay or negation made new ones.
                aten._foreach_add_(grads, buffers, alpha=momentum)
            else:
                grads = buffers
        aten._foreach_add_(parameters, grads, alpha=number(-group["lr"]))

    @staticmethod
    def buffers(grads: list[Tensor], states: list[dict[str, Any]], momentum: float, dampening: float) -> list[Tensor]:
        """The momentum buffers after this step's gradients went in."""
        if all("momentum_buffer" in state for state in states):
            buffers = [state["momentum_buffer"] for state in states]
            aten._foreach_mul_(buffers, momentum)
            aten._foreach_add_(buffers, grads, alpha=1 - dampening)
            return buffers
        for grad, state in zip(grads, states, strict=True):
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = aten.clone(grad.detach())
            else:
                aten.add_(aten.mul_(state["momentum_buffer"], momentum), grad, alpha=1 - dampening)
        return [state["momentum_buffer"] for state in states]

    def update_fused(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        buffers: list[Tensor] = []
        first = False
        if group["momentum"] != 0:
            first = all("momentum_buffer" not in state for state in states)
            for grad, state in zip(grads, states, strict=True):
                if first:
                    state["momentum_buffer"] = aten.empty_like(grad)
                elif "momentum_buffer" not in state:
                    raise RuntimeError(
                        "fused SGD needs a momentum buffer for every parameter of a group or for none: a parameter "
                        "got its first gradient after others of its group had stepped"
                    )
            buffers = [state["momentum_buffer"] for state in states]
        aten._fused_sgd_(
            parameters, grads, buffers, weight_decay=number(group["weight_decay"]), momentum=group["momentum"],
            lr=number(group["lr"]), dampening=group["dampening"], nesterov=group["nesterov"],
            maximize=group["maximize"], is_first_step=first, grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
        )
