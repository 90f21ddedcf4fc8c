"""`torch.overrides`: the protocol by which classes and modes take functions over."""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from ._dispatch.overriding import (
    ACTIVE,
    STATE,
    DisableTorchFunctionSubclass,
    EnableTorchFunction,
    arm,
    offer,
    overriders,
    overrides,
)
from ._faces import CONSTRUCTORS, FACES, MODULES, NOT_OFFERED, PACKAGE, SECOND_NAMES, name_of
from ._tensor import Tensor

__all__ = ["DisableTorchFunctionSubclass", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions",
           "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function"]


# Functions that make tensors from numbers: only modes are asked about them.
_FROM_NUMBERS = CONSTRUCTORS | {"arange", "range"}


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of an argument, or a mode, takes functions over now."""
    if STATE.skip:
        STATE.skip = False
        return False
    if STATE.modes and not STATE.all_off:
        return True
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence")
    return not STATE.classes_off and any(overrides(type(one)) for one in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """The same for one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same for arguments that are given one by one."""
    return has_torch_function(args)


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor, or of a class that takes functions over as one."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any,
                          **kwargs: Any) -> Any:
    """Ask the innermost mode, then the arguments, subclasses before their bases, until one gives an answer."""
    asked = overriders(relevant_args, with_tensors=True)
    result = offer(public_api, asked, args, kwargs, operator=True)
    if result is not NotImplemented:
        return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    mode = f" nor in mode {STATE.modes[-1]!r}" if STATE.modes and not STATE.all_off else ""
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: "
                    f"{list(map(type, asked))}{mode}")


def redispatch_function(func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...],
                        kwargs: dict[str, Any] | None) -> Any:
    """Call a function itself, from inside `__torch_function__`; what it calls is offered again.

    >>> import mindtorch_v2 as torch
    >>> class Loud(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return redispatch_function(func, types, args, kwargs)
    >>> def count(x):
    ...     return handle_torch_function(count, (x,), x) if has_torch_function((x,)) else len(x.shape)
    >>> count(torch.ones(2, 3).as_subclass(Loud))
    count
    2
    """
    before, STATE.skip = STATE.skip, True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        STATE.skip = before


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


def resolve_name(f: Any) -> str | None:
    """`torch.add`, `torch.Tensor.add` or `torch.Tensor.shape.__get__`; None for other functions."""
    return str(f) if hasattr(f, "_schema") else name_of(f)


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether a function is an attribute of Tensor."""
    return (name_of(func) or "").startswith("torch.Tensor.") and getattr(func, "__name__", "") != "__set__"


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that can be taken over, by the module or class they belong to.

    Functions and methods ask from now on: before that, a method that was never called stands for another function.
    """
    arm(True)
    found: dict[Any, list[Any]] = defaultdict(list)
    for name in MODULES:
        module = importlib.import_module(name)
        names = SECOND_NAMES if name == f"{PACKAGE}.functional" else dir(module)
        found[module] = [getattr(module, one) for one in names
                         if one not in _FROM_NUMBERS
                         # (PyTorch leaves out what changes its argument, except of nn.init.)
                         and not (one.endswith("_") and not name.endswith("nn.init"))
                         and FACES.is_offered(name, module, one, vars(module).get(one) or getattr(module, one))]
    for name, value in vars(Tensor).items():
        if isinstance(value, FunctionType) and name in FACES.methods:
            found[Tensor].append(value)
        elif isinstance(value, property) and name not in NOT_OFFERED and value.fget in FACES.codes:
            found[value].append(value.__get__)  # by itself, as in PyTorch
    return found


def get_testing_overrides() -> dict[Any, Callable[..., Any]]:
    """For each function that can be taken over, one with its signature that returns -1."""
    return {function: _answering(function) for functions in get_overridable_functions().values()
            for function in functions}


def _answering(function: Any) -> Callable[..., int]:
    def answer(*args: Any, **kwargs: Any) -> int:
        return -1

    if isinstance(getattr(function, "__self__", None), property):
        answer.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    else:
        own = inspect.signature(function, follow_wrapped=False)
        known = inspect.signature(function) if any(p.kind is p.VAR_POSITIONAL for p in own.parameters.values()) else own
        # Without required arguments, it is unknown which one is asked.
        anything = all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in known.parameters.values())
        answer.__signature__ = own if anything else known  # type: ignore[attr-defined]
    answer.__name__ = function.__name__
    return answer


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] = type) -> list[Any]:
    """The arguments that are asked, in the order in which they are."""
    return overriders(relevant_args, with_tensors=True)


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are not converted to a subclass."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


def get_ignored_functions() -> set[Any]:
    """The public functions that cannot be taken over."""
    offered = {function for functions in get_overridable_functions().values() for function in functions}
    public = (vars(module).get(name) for module in map(importlib.import_module, MODULES)
              for name in getattr(module, "__all__", dir(module)))
    methods = (value for name, value in vars(Tensor).items() if isinstance(value, FunctionType) and name in NOT_OFFERED)
    return {one for one in (*public, *methods) if isinstance(one, FunctionType) and one not in offered}


class TorchFunctionMode:
    """While it is entered, every public function that is called is given to its `__torch_function__` first.

    That can call the function, under the modes further out, or answer in its place. The runtime's own calls are not
    offered.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        arm(False)
        ACTIVE.append(self)
        STATE.modes.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        STATE.modes.pop()
        ACTIVE.pop()
        FACES.disarm()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, as PyTorch's older programs make one."""
        return cls(*args, **kwargs)


def _get_current_function_mode() -> Any:
    """The innermost mode, or None."""
    return STATE.modes[-1] if STATE.modes else None


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """A context without the innermost mode, which it yields."""
    mode = STATE.modes.pop()
    try:
        yield mode
    finally:
        STATE.modes.append(mode)


def _len_torch_function_stack() -> int:
    """How many modes take functions over in this thread."""
    return len(STATE.modes)


def _get_current_function_mode_stack() -> list[Any]:
    """The modes, innermost last."""
    return list(STATE.modes)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside `__torch_dispatch__`: let classes take over the ops that it calls, which they do here anyway."""
    yield


def _enable_torch_function() -> EnableTorchFunction:
    """A context in which classes and modes may take functions over, whatever was turned off outside."""
    return EnableTorchFunction()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
