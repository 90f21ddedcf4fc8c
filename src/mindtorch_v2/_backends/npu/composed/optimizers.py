"""Steps of optimizers, for one parameter."""

from __future__ import annotations

from typing import Any

from ..arrays import FLOAT32, NpuArray, filled, like
from ..call import CALLS
from ..stream import stream_of
from .functions import negative
from .registry import composed

# The functions that fused optimizer steps call, for one parameter.


@composed("adam")
def adam(parameter: NpuArray, grad: NpuArray, average: NpuArray, square: NpuArray, largest: Any, step: float, lr: float,
         beta1: float, beta2: float, weight_decay: float, eps: float, maximize: bool, decoupled: bool,
         scale: Any) -> None:
    """One step of Adam or AdamW."""
    if scale is not None:
        CALLS.InplaceDiv(grad, scale)
    if not decoupled and weight_decay:
        moved = like(grad)
        CALLS.Add(grad, parameter, -weight_decay if maximize else weight_decay, moved)
        grad, weight_decay = moved, 0.0
    count = _counted(parameter, float(step))
    CALLS.ApplyAdamWV2(parameter, average, square, largest, grad, count, lr, beta1, beta2, weight_decay, eps,
                       largest is not None, maximize)


# The last step count of each stream, on its device: all parameters of a step have the same.
_COUNTS: dict[tuple[int, int], tuple[float, NpuArray]] = {}


def _counted(beside: NpuArray, step: float) -> NpuArray:
    index = beside.memory.device.index
    key = (index, stream_of(index).npu_stream)
    found = _COUNTS.get(key)
    if found is None or found[0] != step:
        found = _COUNTS[key] = (step, filled((1,), FLOAT32, index, step))
    return found[1]


@composed("sgd")
def sgd(parameter: NpuArray, grad: NpuArray, buffer: Any, weight_decay: float, momentum: float, lr: float,
        dampening: float, nesterov: bool, maximize: bool, first: bool, scale: Any) -> None:
    """One step of stochastic gradient descent."""
    if scale is not None:
        CALLS.InplaceDiv(grad, scale)
    change = grad
    if maximize:
        change = negative(change)
    if weight_decay:
        moved = like(change)
        CALLS.Add(change, parameter, weight_decay, moved)
        change = moved
    if buffer is not None:
        if first:
            CALLS.InplaceCopy(buffer, change)
        else:
            CALLS.InplaceMuls(buffer, momentum)
            CALLS.InplaceAdd(buffer, change, 1 - dampening)
        if nesterov:
            moved = like(change)
            CALLS.Add(change, buffer, momentum, moved)
            change = moved
        else:
            change = buffer
    CALLS.InplaceAdd(parameter, change, -lr)


@composed("adagrad")
def adagrad(parameter: NpuArray, grad: NpuArray, total: NpuArray, step: float, lr: float, lr_decay: float,
            weight_decay: float, eps: float, maximize: bool, scale: Any) -> None:
    """One step of Adagrad."""
    if scale is not None:
        CALLS.InplaceDiv(grad, scale)
    change = negative(grad) if maximize else grad
    if weight_decay:
        moved = like(change)
        CALLS.Add(change, parameter, weight_decay, moved)
        change = moved
    root = like(total)
    CALLS.InplaceAddcmul(total, change, change, 1.0)
    CALLS.Sqrt(total, root)
    CALLS.InplaceAdds(root, eps, 1)
    CALLS.InplaceAddcdiv(parameter, change, root, -lr / (1 + (step - 1) * lr_decay))
