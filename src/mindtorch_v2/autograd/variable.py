"""`torch.autograd.Variable`: what tensors with gradients were, before all tensors could have them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._autograd.engine import at_end_of_backward
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """The type of `Variable`: every tensor is an instance, and calling it makes a plain tensor."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool = False,
                 *, name: str | None = None) -> Any:
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                          UserWarning, stacklevel=2)
        made = aten.empty((0,)) if data is None else aten.detach(data)
        if requires_grad:
            made.requires_grad_()
        return made


class Variable(metaclass=VariableMeta):
    """A tensor that shares another's memory and has no history; `requires_grad` starts one."""

    _execution_engine: ImperativeEngine


class ImperativeEngine:
    """The part of PyTorch's engine that programs ask for by name."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call a function when the backward that runs now has ended."""
        if THREAD.state.walk is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        at_end_of_backward(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether checkpoints can run backward inside backward: always."""
        return True


Variable._execution_engine = ImperativeEngine()
