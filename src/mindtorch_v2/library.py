"""`torch.library`: ops of a program's own.

They are declared through the same registry as the ops of the table (`_library/definition.py`), so a profile shows them
by name, with inputs and autograd nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._absent import refusing
from ._library import table
from ._library.custom_ops import OPDEFS, CustomOpDef, custom_op, register_autocast_of
from ._library.definition import fallthrough_kernel
from ._library.infer_schema import infer_schema
from ._library.libraries import (
    Library,
    _scoped_library,  # noqa: F401  (programs' tests take it from here)
    define,
    device_key,
    fragment,
    impl,
    set_formula,
)
from ._library.opcheck import opcheck
from .ops import OpOverload

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl",
           "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake",
           "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]

_TRITON = "torch.library.{0}: Triton kernels run on GPUs, which this runtime does not support"
triton_op = refusing("triton_op", NotImplementedError, _TRITON.format("triton_op"))
wrap_triton = refusing("wrap_triton", NotImplementedError, _TRITON.format("wrap_triton"))
get_ctx = refusing("get_ctx", NotImplementedError, "torch.library.get_ctx: sizes that depend on data belong to "
                   "PyTorch's compiler, which this runtime does not have")
get_kernel = refusing("get_kernel", NotImplementedError, "torch.library.get_kernel: kernels of dispatch keys are not "
                      "objects here; call the op, or a Library's function itself")


def _qualname(op: Any, caller: str) -> str:
    if isinstance(op, OpOverload):
        return op.name()
    if isinstance(op, CustomOpDef):
        return op._qualname
    if not isinstance(op, str):
        raise ValueError(f"{caller}(op): got unexpected type for op: {type(op)}")
    return op


def register_kernel(op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *,
                    lib: Library | None = None) -> Any:
    """Register an op for device types, as a decorator or with the function given."""
    qualname = _qualname(op, "register_kernel")
    if qualname in OPDEFS:
        return OPDEFS[qualname].register_kernel(device_types, func)
    types = ["default"] if device_types is None else [device_types] if isinstance(device_types, str) else device_types

    def register(function: Callable[..., Any]) -> None:
        library = fragment(table.parse_qualname(qualname)[0], lib)
        for key in [device_key(one) for one in types]:
            library.impl(qualname, function, key)

    return register if func is None else register(func)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None,
                  _stacklevel: int = 1, allow_override: bool = True) -> Any:
    """Register what an op does on tensors without data, as a decorator or with the function given."""
    qualname = _qualname(op, "register_fake")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = table.find(qualname)
        if definition is not None and definition.fake is not None and not allow_override:
            raise RuntimeError(f"register_fake(...): the operator {qualname} already has a fake impl registered")
        if definition is None:
            table.PENDING.setdefault(qualname, {})["Meta"] = function
        else:
            definition.fake = function
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Callable[..., Any] | None = None, *, lib: Library | None = None,
                  _stacklevel: int = 1) -> Any:
    """The old name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None,
                      lib: Library | None = None) -> None:
    """An op's backward."""
    qualname = _qualname(op, "register_autograd")
    set_formula(table.lookup(qualname), OPDEFS.get(qualname, qualname), backward, setup_context)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """The dtype that an op's arguments are cast to in an autocast region."""
    register_autocast_of(table.lookup(_qualname(op, "register_autocast")), device_type, cast_inputs)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *,
                            lib: Library | None = None) -> Any:
    """Register `func(mode or class, func, types, args, kwargs)` for an op and a class with `__torch_dispatch__`.

    >>> import mindtorch_v2 as torch
    >>> from mindtorch_v2.utils._python_dispatch import TorchDispatchMode
    >>> class Zeros(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         return func(*args, **(kwargs or {}))
    >>> doubled = torch.library.custom_op("docs::doubled", lambda x: x * 2, mutates_args=(),
    ...                                   schema="(Tensor x) -> Tensor")
    >>> _ = register_torch_dispatch(doubled, Zeros, lambda mode, func, types, args, kwargs: torch.zeros(1))
    >>> with Zeros():
    ...     doubled(torch.ones(1))
    tensor([0.])
    """
    qualname = _qualname(op, "register_torch_dispatch")
    if qualname in OPDEFS:
        return OPDEFS[qualname].register_torch_dispatch(torch_dispatch_class, func)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        namespace, name = table.parse_qualname(qualname)
        fragment(namespace, lib)._register_torch_dispatch_rule(name, torch_dispatch_class, function)
        return function

    return register if func is None else register(func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Accept a rule that is never used: `vmap` here calls an op once for each example."""
    qualname = _qualname(op, "register_vmap")
    table.lookup(qualname)

    def register(function: Callable[..., Any]) -> None:
        return None

    return register if func is None else None
