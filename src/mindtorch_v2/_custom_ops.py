"""`torch._custom_ops`: the older way to define ops, in parts that are registered one by one; now `torch.library`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._custom_op.impl import SUPPORTED_DEVICE_TYPE_TO_KEY, custom_op, find_custom_op
from ._library.libraries import device_key

__all__ = ["custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

DEVICES = tuple(SUPPORTED_DEVICE_TYPE_TO_KEY)


def impl(qualname: str, *, device_types: str | Sequence[str] = DEVICES, func: Callable[..., Any] | None = None) -> Any:
    """Register the op for device types, as a decorator or with the function given."""
    types = [device_types] if isinstance(device_types, str) else list(device_types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = find_custom_op(qualname)
        for one in types:
            if one not in DEVICES:
                raise ValueError(f"CustomOp.impl(device_types=[{one}, ...]): we only support device_type in "
                                 f"{DEVICES}.")
            if device_key(one) in op.definition.kernels:
                raise RuntimeError(f"Attempting to register a {one} impl for operator {qualname} that already has a "
                                   f"{one} impl registered from Python. This is not supported.")
            op.library.impl(op.name, function, device_key(one))
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """Register what the op does on tensors without data."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        find_custom_op(qualname).definition.fake = function
        return function

    return register if func is None else register(func)


def impl_save_for_backward(qualname: str, *, func: Callable[..., Any] | None = None) -> Any:
    """`func(inputs, output)` returns what the backward needs."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = find_custom_op(qualname)
        op.save = function
        op.complete()
        return function

    return register if func is None else register(func)


def impl_backward(qualname: str, output_differentiability: Sequence[bool] | None = None, *,
                  func: Callable[..., Any] | None = None) -> Any:
    """`func(ctx, saved, *grads)` returns a dictionary with a gradient for each tensor argument."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        op = find_custom_op(qualname)
        if output_differentiability is not None:
            if len(output_differentiability) != len(op.definition.schema.returns):
                raise RuntimeError("impl_backward(output_differentiability): expected output_differentiability to be a "
                                   "list of bools with length equal to the number of outputs of this CustomOp got: "
                                   f"{output_differentiability}")
            if not all(output_differentiability):
                raise NotImplementedError("torch._custom_ops.impl_backward: outputs without a gradient are not "
                                          "supported here; give them one, or use torch.library.custom_op")
        op.backward = function
        op.complete()
        return function

    return register if func is None else register(func)


def _destroy(qualname: str) -> None:
    """Forget an op."""
    find_custom_op(qualname)._destroy()
