"""Tensors that a module owns: `Parameter` is trained, `Buffer` is only kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dtype import FLOAT, DefaultDtype
from .._tensor import Tensor, TensorMeta, wrap, wrap_as
from .._tensor_methods import rebuild


class Parameter(Tensor):
    """A tensor that becomes part of a module when it is assigned to one of its attributes.

    It shares memory with `data` and requires grad unless told otherwise.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = wrap(np.empty(0, DefaultDtype.value.np))
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data should be a torch.Tensor, but got {type(data).__name__}")
        if requires_grad and data.dtype.category < FLOAT:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made = wrap_as(cls, data._a)
        made._st = data.shared()
        made._rg = bool(requires_grad)
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # Like PyTorch: neither the gradient nor attributes set by the user are copied along.
        if id(self) not in memo:
            memo[id(self)] = type(self)(aten.clone(aten.detach(self)), self._rg)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any = None) -> Any:
        reduced: Any = Tensor.__reduce_ex__(self, protocol)
        notes = dict(self.__dict__)
        return (rebuild_parameter, (*reduced[1], notes)) if notes else reduced


def rebuild_parameter(cls: type, array: np.ndarray, requires_grad: bool, notes: dict[str, Any]) -> Any:
    """What a pickled parameter with attributes of its own comes back through."""
    made = rebuild(cls, array, requires_grad)
    made.__dict__.update(notes)
    return made


class BufferMeta(TensorMeta):
    """`isinstance(x, Buffer)` asks for a mark: buffers are plain tensors otherwise."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to; `persistent` says whether it is saved."""

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = wrap(np.empty(0, DefaultDtype.value.np))
        made = aten.detach(data)
        made._rg = data.requires_grad
        made.persistent = persistent
        made._is_buffer = True
        return made


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet. Lazy modules are not part of this runtime."""

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        raise NotImplementedError("UninitializedParameter: lazy modules, which find their shapes at the first call, "
                                  "are not supported by this runtime; give the shapes when constructing the module")


def is_lazy(parameter: Any) -> bool:
    """Whether a parameter still waits for its shape."""
    return isinstance(parameter, UninitializedParameter)


__all__ = ["Buffer", "Parameter", "UninitializedParameter", "is_lazy"]
