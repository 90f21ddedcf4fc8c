"""Moving a module: dtype and device of everything it owns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..._autograd.grad_mode import no_grad
from ..._device import DeviceLike, as_device, device
from ..._dispatch.namespace import aten
from ..._dtype import FLOAT, bfloat16, dtype, float16, float32, float64
from ..._tensor import Tensor
from ...utils._swapping import swap_tensors
from ..parameter import Parameter, is_lazy
from ._tree import Tree

Self = TypeVar("Self", bound="Convert")
device_type, dtype_type = device, dtype


class Conversion:
    """What `torch.__future__` sets: whether converted modules get new parameters, and whether tensors are swapped."""

    overwrite = False
    swap = False


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dtype | None, bool, Any]:
    """`(device, dtype, non_blocking, memory_format)` from any of the forms that `to` accepts."""
    where, kind = kwargs.pop("device", None), kwargs.pop("dtype", None)
    non_blocking, like = kwargs.pop("non_blocking", False), kwargs.pop("tensor", None)
    memory_format = kwargs.pop("memory_format", None)
    kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    for value in args:
        if isinstance(value, dtype_type):
            kind = value
        elif isinstance(value, Tensor):
            like = value
        elif isinstance(value, bool):
            non_blocking = value
        elif isinstance(value, (str, device_type, int)):
            where = value
        elif value is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(value).__name__})")
    if like is not None:
        where, kind = like.device, like.dtype
    return (None if where is None else as_device(where)), kind, non_blocking, memory_format


def _unmade_through(fn: Callable[[Tensor], Tensor], waiting: Tensor) -> Tensor:
    """A parameter or buffer that waits for its shape, with the dtype and device that a conversion gives."""
    like = fn(aten.empty(0, dtype=waiting.dtype, device=waiting.device))
    return type(waiting)(waiting.requires_grad, like.device, like.dtype)  # type: ignore[arg-type]


class Convert(Tree):
    """The part of `Module` that converts."""

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Put every parameter, gradient and buffer through `fn`; parameters stay the same objects, if they can."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            if is_lazy(parameter):
                parameter._a = _unmade_through(fn, parameter)._a
                continue
            with no_grad():
                changed = fn(parameter)
            grad = parameter.grad
            if Conversion.swap:
                self._swap(name, parameter, changed, fn)
                continue
            if Conversion.overwrite or not aten._has_compatible_shallow_copy_type(parameter, changed):
                replacement = Parameter(changed, parameter.requires_grad)
                replacement.grad = None if grad is None else fn(grad).detach()
                self._parameters[name] = replacement
                continue
            parameter.data = changed
            if grad is not None:
                with no_grad():
                    changed_grad = fn(grad)
                if aten._has_compatible_shallow_copy_type(grad, changed_grad):
                    grad.data = changed_grad
                else:
                    parameter.grad = changed_grad
        for name, buffer in self._buffers.items():
            if buffer is None:
                continue
            changed = _unmade_through(fn, buffer) if is_lazy(buffer) else fn(buffer)
            self._buffers[name] = changed
        return self

    def _swap(self, name: str, parameter: Parameter, changed: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
        """Exchange a parameter, and its gradient, with what they are to be."""
        grad = parameter.grad
        try:
            swap_tensors(parameter, Parameter(changed, parameter.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        if grad is None:
            return
        with no_grad():
            changed_grad = fn(grad)
        changed_grad.requires_grad = grad.requires_grad
        try:
            if changed_grad is not grad:
                swap_tensors(grad, changed_grad)
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}.grad") from error
        parameter.grad = grad

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, or convert floating point parameters and buffers to a dtype; in place."""
        where, kind, non_blocking, memory_format = parse_to(args, dict(kwargs))
        if kind is not None and kind.category < FLOAT:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got desired "
                            f"dtype={kind}")
        if kind is not None and kind.is_complex:
            warnings.warn("Complex modules are a new feature under active development: some layers do not compute "
                          "with complex parameters or buffers.", stacklevel=2)

        def convert(tensor: Tensor) -> Tensor:
            if tensor.is_meta and where is not None and where.type != "meta":
                raise NotImplementedError("Cannot copy out of meta tensor; no data! torch.nn.Module.to_empty() gives "
                                          "a module from meta memory on another device.")
            wanted = kind if tensor.dtype.category >= FLOAT else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return aten.to(tensor, device=where, dtype=wanted, non_blocking=non_blocking,
                               memory_format=memory_format)
            return aten.to(tensor, device=where, dtype=wanted, non_blocking=non_blocking)

        return self._apply(convert)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert everything, integers included, to one dtype."""
        return self._apply(lambda tensor: aten.type(tensor, dst_type))

    def _floating(self: Self, kind: dtype) -> Self:
        return self._apply(lambda tensor: aten.to(tensor, kind) if tensor.dtype.category == FLOAT else tensor)

    def float(self: Self) -> Self:
        """Floating point parameters and buffers as float32."""
        return self._floating(float32)

    def double(self: Self) -> Self:
        """Floating point parameters and buffers as float64."""
        return self._floating(float64)

    def half(self: Self) -> Self:
        """Floating point parameters and buffers as float16."""
        return self._floating(float16)

    def bfloat16(self: Self) -> Self:
        """Floating point parameters and buffers as bfloat16."""
        return self._floating(bfloat16)

    def cpu(self: Self) -> Self:
        """Everything in host memory."""
        return self._apply(lambda tensor: aten.to(tensor, device="cpu"))

    def npu(self: Self, device: DeviceLike = None) -> Self:
        """Everything on an Ascend NPU."""
        return self._apply(lambda tensor: aten.npu(tensor, device))

    def cuda(self: Self, device: DeviceLike = None) -> Self:
        """Everything on a CUDA device, which this runtime does not have: the error says so."""
        return self._apply(lambda tensor: aten.to(tensor, device="cuda" if device is None else device))

    def to_empty(self: Self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Move to a device without copying contents."""
        for waiting in filter(is_lazy, (*self.parameters(recurse), *self.buffers(recurse))):
            aten.empty_like(waiting)  # says why not
        return self._apply(lambda tensor: aten.empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self: Self) -> Self:
        """Move parameters and buffers to memory that processes forked from now on share."""
        for waiting in filter(is_lazy, (*self.parameters(), *self.buffers())):
            waiting.share_memory_()  # says why not
        return self._apply(lambda tensor: tensor.share_memory_())
