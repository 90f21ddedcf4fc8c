"""`torch.overrides`: the protocol by which classes take over functions, for functions written by the program.

The ops of this runtime themselves do not look for `__torch_function__`: a subclass of Tensor is a tensor to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._absent import refusing, refusing_class
from ._functions import DisableTorchFunctionSubclass
from ._tensor import Tensor

__all__ = ["DisableTorchFunctionSubclass", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions",
           "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]

_REASON = "torch.overrides.{0}: the ops of this runtime do not look for __torch_function__"
TorchFunctionMode = refusing_class("TorchFunctionMode", NotImplementedError, _REASON.format("TorchFunctionMode"))
get_ignored_functions = refusing("get_ignored_functions", NotImplementedError, _REASON.format("get_ignored_functions"))
get_overridable_functions = refusing("get_overridable_functions", NotImplementedError,
                                     _REASON.format("get_overridable_functions"))
get_testing_overrides = refusing("get_testing_overrides", NotImplementedError, _REASON.format("get_testing_overrides"))
is_tensor_method_or_property = refusing("is_tensor_method_or_property", NotImplementedError,
                                        _REASON.format("is_tensor_method_or_property"))
resolve_name = refusing("resolve_name", NotImplementedError, _REASON.format("resolve_name"))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of an argument has a `__torch_function__`."""
    return any(hasattr(type(one), "__torch_function__") for one in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """The same for one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same for arguments that are given one by one."""
    return has_torch_function(args)


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor, or of a class that takes functions over as one."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """Call the arguments' `__torch_function__`, subclasses before their bases, until one gives an answer."""
    asked: list[Any] = []
    for one in relevant_args:
        if not hasattr(type(one), "__torch_function__") or any(type(one) is type(other) for other in asked):
            continue
        before = next((i for i, other in enumerate(asked) if issubclass(type(one), type(other))), len(asked))
        asked.insert(before, one)
    types = tuple(map(type, asked))
    for one in asked:
        result = one.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: "
                    f"{list(types)}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for functions that classes may take over; `dispatcher` gives the arguments that are asked."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        wrapped.__name__, wrapped.__module__, wrapped.__doc__ = function.__name__, function.__module__, function.__doc__
        return wrapped

    return decorate
