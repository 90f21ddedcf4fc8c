"""`torch.utils._python_dispatch`: modes that see every op of a program, those of backward too."""

from __future__ import annotations

from typing import Any

from .. import ops as _ops  # noqa: F401  (modes are given the overloads of `torch.ops`)
from .._dispatch.dispatch_modes import enter, leave
from .._tensor import Tensor

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """While it is entered, each op of this thread is given to `__torch_dispatch__`, which answers in its place.

    >>> import mindtorch_v2 as torch
    >>> from mindtorch_v2.utils._python_dispatch import TorchDispatchMode
    >>> class Loud(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Loud():
    ...     y = torch.nn.functional.linear(torch.eye(2), torch.eye(2))
    aten.eye.default
    aten.eye.default
    aten.t.default
    aten.mm.default
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What a derived class does for each op."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, as PyTorch's older programs make one."""
        return cls(*args, **kwargs)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether something is a tensor made of other tensors, which is what `__torch_dispatch__` on classes is for."""
    return isinstance(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
