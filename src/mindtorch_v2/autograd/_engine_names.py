"""Names of the Python side of PyTorch's engine that programs call: how `backward` and `grad` prepare and start it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd.api import _initial_grads, _roots, _target
from .._autograd.engine import run_backward
from .._dispatch.state import THREAD
from .._tensor import Tensor
from ..utils._contextlib import _DecoratorContextManager


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor, or takes functions over as one."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """One tensor or several as a tuple; None for each where there are none."""
    if tensors is None:
        return (None,) * length
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def _make_grads(outputs: Sequence[Any], grads: Sequence[Any], is_grads_batched: bool) -> tuple[Any, ...]:
    """The gradients to start with: what was given, ones for single numbers."""
    if is_grads_batched:
        for grad in grads:
            if grad is not None:
                _initial_grads(outputs, [one if one is None else one[0] for one in grads])
                return tuple(grads)
    return tuple(_initial_grads(outputs, grads))


def _engine_run_backward(t_outputs: Sequence[Any], grads: Sequence[Any], retain_graph: bool, create_graph: bool,
                         inputs: Sequence[Any] = (), allow_unreachable: bool = False,
                         accumulate_grad: bool = False) -> tuple[Any, ...]:
    """One backward pass: into the leaves, or the gradients of the inputs."""
    roots, values = _roots(t_outputs, grads)
    targets = [_target(one, number) for number, one in enumerate(inputs)] if inputs else None
    found = run_backward(roots, values, retain_graph, create_graph, targets, accumulate=accumulate_grad)
    if not accumulate_grad and not allow_unreachable and any(one is None for one in found):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                           "allow_unused=True if this is the desired behavior.")
    return tuple(found)


def _is_checkpoint_valid() -> bool:
    """Whether checkpoints can run backward inside backward: always."""
    return True


class enforce_grad_layout_policy(_DecoratorContextManager):
    """Whether a leaf takes over only gradients that lie in memory as it does (the default), or any that nobody holds.

    It takes effect at once, in this thread, and is undone when used as a context manager or decorator.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(2, 3).t().requires_grad_()
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     x.view_as(x).backward(torch.ones(3, 2))
    >>> x.stride(), x.grad.stride()
    ((1, 3), (2, 1))
    """

    def __init__(self, enable: bool = True) -> None:
        self.prev = _is_grad_layout_enforcement_enabled()
        self.mode = enable
        _set_grad_layout_enforcement_enabled(enable)

    def __call__(self, orig_func: Any) -> Any:
        _set_grad_layout_enforcement_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _set_grad_layout_enforcement_enabled(self.prev)

    def clone(self) -> enforce_grad_layout_policy:
        """Another with the same setting."""
        return type(self)(self.mode)


def _is_grad_layout_enforcement_enabled() -> bool:
    """Whether leaves of this thread take over only gradients that lie as they do."""
    return not THREAD.state.any_layout


def _set_grad_layout_enforcement_enabled(enabled: bool) -> None:
    """Say so."""
    THREAD.state.any_layout = not enabled
