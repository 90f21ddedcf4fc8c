"""Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._tensor import Tensor
from ..optim.optimizer import ParamsT
from ._stepping import ParameterOptimizer, check_lr, column, count_step, functional_forms, kept, number, scalar_dtype

__getattr__ = functional_forms(__name__)


class Rprop(ParameterOptimizer):
    """Resilient propagation: each element has its own step size, which grows while its gradient keeps its sign."""

    late_options: ClassVar[dict[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })

    def start(self, state: dict[str, Any], parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        lr = number(group["lr"])
        state["step"] = aten.zeros((), dtype=scalar_dtype())
        state["prev"] = aten.zeros_like(parameter)
        state["step_size"] = aten.full_like(grad, complex(lr, lr) if parameter.dtype.is_complex else lr)

    def update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        previous, size = state["prev"], state["step_size"]
        if group["maximize"]:
            grad = aten.neg(grad)
        aten.add_(state["step"], 1)
        agreement = aten.mul(grad, kept(previous, group))
        factor = replace_signs(aten.sign(agreement), shrink, grow)
        aten.clamp_(aten.mul_(size, factor), smallest, largest)
        # Where the gradient changed its sign, this step waits and the next starts afresh.
        grad = aten.clone(grad)
        grad[aten.eq(factor, shrink)] = 0
        aten.addcmul_(parameter, aten.sign(grad), kept(size, group), value=-1)
        aten.copy_(previous, grad)

    def update_lists(self, parameters: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]],
                     group: dict[str, Any]) -> None:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        previous, sizes = column(states, "prev"), column(states, "step_size")
        count_step(states)
        factors = aten._foreach_mul(grads, previous)
        if group["maximize"]:
            aten._foreach_neg_(factors)
        aten._foreach_copy_(previous, grads)
        if group["maximize"]:
            aten._foreach_neg_(previous)
        aten._foreach_sign_(factors)
        for factor in factors:
            replace_signs(factor, shrink, grow)
        aten._foreach_mul_(sizes, factors)
        for size in sizes:
            aten.clamp_(size, smallest, largest)
        for before, factor in zip(previous, factors, strict=True):
            aten.copy_(before, aten.where(aten.eq(factor, shrink), 0, before))
        aten._foreach_addcmul_(parameters, [aten.sign(p) for p in previous], sizes, value=-1)


def replace_signs(signs: Tensor, shrink: float, grow: float) -> Tensor:
    """The factors for step sizes: `grow` for 1, `shrink` for -1, 1 for 0; written into `signs`."""
    signs[aten.gt(signs, 0)] = grow
    signs[aten.lt(signs, 0)] = shrink
    signs[aten.eq(signs, 0)] = 1
    return signs
