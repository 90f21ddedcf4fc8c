"""`_fused_*_`: an optimizer's step over all its parameters as one op."""

from __future__ import annotations

from typing import Any

from .._autograd.inplace import bump
from .._backends.base import on_device
from .._backends.cpu import optimizer as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._tensor import Tensor


def arrays(tensors: Any) -> list[Any]:
    """The arrays of tensors."""
    return [tensor._a for tensor in tensors]


def by_blocks(count: int, kernel: Any) -> Any:
    """A kernel whose first arrays are cut into blocks that fit the cache, as a function that devices can replace."""

    def run(*arguments: Any) -> None:
        for block in kernels.blocks(*arguments[:count]):
            kernel(*block, *arguments[count:])

    run.__name__ = kernel.__name__
    return on_device(run)


sgd, adam, adagrad = by_blocks(3, kernels.sgd), by_blocks(5, kernels.adam), by_blocks(3, kernels.adagrad)


def changed(*lists: Any) -> None:
    """Count the change of tensors that a kernel wrote into."""
    for tensors in lists:
        for tensor in tensors:
            bump(tensor)


def skipped(found_inf: Tensor | None) -> bool:
    """A scaled step with infinite gradients is left out."""
    return found_inf is not None and aten.item(found_inf) == 1.0


def _number(value: Any) -> float:
    return aten.item(value) if isinstance(value, Tensor) else value


def _sgd(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: float, momentum: float, lr: Any,
         dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any,
         found_inf: Any) -> None:
    if skipped(found_inf):
        return
    rate = _number(lr)
    scale = None if grad_scale is None else grad_scale._a
    buffers = arrays(momentum_buffer_list) if momentum_buffer_list else [None] * len(self)
    for parameter, grad, buffer in zip(arrays(self), arrays(grads), buffers, strict=True):
        sgd(parameter, grad, buffer, weight_decay, momentum, rate, dampening, nesterov, maximize, is_first_step, scale)
    changed(self, momentum_buffer_list)


def _adam(name: str, decoupled: bool) -> Any:
    def run(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any,
            beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
            grad_scale: Any, found_inf: Any) -> None:
        if skipped(found_inf):
            return
        rate = _number(lr)
        scale = None if grad_scale is None else grad_scale._a
        largest = arrays(max_exp_avg_sqs) if amsgrad else [None] * len(self)
        columns = (arrays(tensors) for tensors in (self, grads, exp_avgs, exp_avg_sqs))
        for parameter, grad, average, square, top, step in zip(*columns, largest, state_steps, strict=True):
            count = aten.item(step)
            adam(parameter, grad, average, square, top, count, rate, beta1, beta2, weight_decay, eps, maximize,
                 decoupled, scale)
        changed(self, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)

    return run


def _adagrad(self: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: float, weight_decay: float,
             eps: float, maximize: bool, grad_scale: Any, found_inf: Any) -> None:
    if skipped(found_inf):
        return
    rate = _number(lr)
    scale = None if grad_scale is None else grad_scale._a
    columns = (arrays(tensors) for tensors in (self, grads, state_sums))
    for parameter, grad, total, step in zip(*columns, state_steps, strict=True):
        count = aten.item(step)
        adagrad(parameter, grad, total, count, rate, lr_decay, weight_decay, eps, maximize, scale)
    changed(self, state_sums)


_SCALING = "Tensor? grad_scale=None, Tensor? found_inf=None"
declare(
    "_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, "
    f"float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, {_SCALING}) -> ()",
    composite=_sgd, where="f",
)
for _name, _decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
    declare(
        f"{_name}(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, "
        "Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, "
        f"bool maximize, {_SCALING}) -> ()",
        composite=_adam(_name, _decoupled), where="f",
    )
declare(
    "_fused_adagrad_(Tensor[] self, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, *, float lr, "
    f"float lr_decay, float weight_decay, float eps, bool maximize, {_SCALING}) -> ()",
    composite=_adagrad, where="f",
)
