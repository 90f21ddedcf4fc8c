"""Moving a module: dtype and device of everything it owns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..._autograd.grad_mode import no_grad
from ..._device import DeviceLike, as_device, device
from ..._dispatch.namespace import aten
from ..._dtype import FLOAT, as_dtype, bfloat16, dtype, float16, float32, float64
from ..._memory_format import memory_format
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


# The forms of `to`: each argument with the types that it may have.
_REST: dict[str, Any] = {"non_blocking": bool, "copy": bool}
_FORMS: tuple[dict[str, Any], ...] = (
    {"device": (str, device_type, int, None.__class__), "dtype": (dtype_type, type, None.__class__), **_REST},
    {"dtype": (dtype_type, type), **_REST}, {"tensor": Tensor, **_REST})


def _fits(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not (isinstance(value, bool) and kinds is not bool)


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dtype | None, bool, Any]:
    """`(device, dtype, non_blocking, memory_format)` from any of the forms that `to` accepts."""
    if len(args) > len(_FORMS[0]):
        raise TypeError(f"to() takes from 0 to {len(_FORMS[0])} positional arguments but {len(args)} were given")
    named = dict(kwargs)
    layout = named.pop("memory_format", None)
    for form in _FORMS if layout is None or isinstance(layout, memory_format) else ():
        given = dict(zip(form, args))
        if len(given) == len(args) and not given.keys() & named.keys() and all(
                name in form and _fits(value, form[name]) for name, value in {**given, **named}.items()):
            break
    else:
        shown = [type(one).__name__ for one in args] + [f"{name}={type(one).__name__}" for name, one in kwargs.items()]
        raise TypeError(f"to() received an invalid combination of arguments - got ({', '.join(shown)}); expected a "
                        "device, a dtype or both, or a dtype, or a tensor, and then non_blocking and memory_format")
    given.update(named)
    if "copy" in given:
        raise RuntimeError(".to() does not accept copy argument")
    like = given.get("tensor")
    where, kind = (given.get("device"), given.get("dtype")) if like is None else (like.device, like.dtype)
    return (None if where is None else as_device(where), None if kind is None else as_dtype(kind, "to"),
            given.get("non_blocking", False), layout)


def _unmade_through(fn: Callable[[Tensor], Tensor], waiting: Tensor) -> Tensor:
    """A parameter or buffer that waits for its shape, with the dtype and device that a conversion gives."""
    like = fn(aten.empty(0, dtype=waiting.dtype, device=waiting.device))
    return type(waiting)(waiting.requires_grad, like.device, like.dtype)


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
                return tensor.to(device=where, dtype=wanted, non_blocking=non_blocking,
                               memory_format=memory_format)
            return tensor.to(device=where, dtype=wanted, non_blocking=non_blocking)

        return self._apply(convert)

    def type(self: Self, dst_type: Any) -> Self:
        """Convert everything, integers included, to one dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _floating(self: Self, kind: dtype) -> Self:
        return self._apply(lambda tensor: tensor.to(kind) if tensor.dtype.category == FLOAT else tensor)

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
        return self._apply(lambda tensor: tensor.cpu())

    def npu(self: Self, device: DeviceLike = None) -> Self:
        """Everything on an Ascend NPU."""
        return self._apply(lambda tensor: tensor.npu(device))

    def cuda(self: Self, device: DeviceLike = None) -> Self:
        """Everything on a CUDA device, which this runtime does not have: the error says so."""
        return self._apply(lambda tensor: tensor.to(device="cuda" if device is None else device))

    def xpu(self: Self, device: DeviceLike = None) -> Self:
        """As `cuda`, for Intel's devices."""
        return self._apply(lambda tensor: tensor.to(device="xpu" if device is None else device))

    def mtia(self: Self, device: DeviceLike = None) -> Self:
        """As `cuda`, for Meta's devices."""
        return self._apply(lambda tensor: tensor.to(device="mtia" if device is None else device))

    def ipu(self: Self, device: DeviceLike = None) -> Self:
        """As `cuda`, for Graphcore's devices."""
        return self._apply(lambda tensor: tensor.to(device="ipu" if device is None else device))

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
