"""`torch.utils._python_dispatch`: modes that see every op of a program, those of backward too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import ops as _ops  # noqa: F401  (modes are given the overloads of `torch.ops`)
from .._dispatch.dispatch_modes import MINE, enter, leave
from .._tensor import Tensor

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "any_torch_dispatch_mode_on_stack",
           "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
           "return_and_correct_aliasing", "transform_subclass"]


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


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets all ops through."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the op answers."""
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is one of tensors made of other tensors."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether something is a tensor made of other tensors, which is what `__torch_dispatch__` on classes is for."""
    return isinstance(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active in this thread."""
    return bool(MINE.modes)


def _get_current_dispatch_mode() -> Any:
    """The innermost mode of this thread, or None."""
    return MINE.modes[-1] if MINE.modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """This thread's modes, innermost last."""
    return list(MINE.modes)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether this thread has a mode."""
    return bool(MINE.modes)


def _push_mode(mode: Any) -> None:
    """Make a mode this thread's innermost one, without its `__enter__`."""
    enter(mode)


def _pop_mode(k: Any = None) -> Any:
    """Take this thread's innermost mode away."""
    if not MINE.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    mode = MINE.modes[-1]
    leave()
    return mode


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """Inside, the innermost mode is not active; gives that mode."""
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Inside, no mode of this thread is active; gives those that were."""
    before = list(MINE.modes)
    for _ in before:
        leave()
    try:
        yield before
    finally:
        for mode in before:
            enter(mode)


def transform_subclass(t: Any, callback: Callable[[str, Tensor], Any], outer_size: Any = None,
                       outer_stride: Any = None) -> Any:
    """A tensor made of others, made again from what `callback(name, inner)` gives for each of them."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size or made.stride() != tuple(stride):
        raise AssertionError(f"{type(t).__name__}.__tensor_unflatten__ gave size {tuple(made.shape)} and stride "
                             f"{made.stride()}, expected {tuple(size)} and {tuple(stride)}")
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a class returns for an op: of one that writes to an argument, that argument itself; a view is on the same
    storage as its argument."""
    schema = func._schema
    if func.is_view and args and isinstance(args[0], Tensor):
        for one in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(one, Tensor):
                one.shared().storage = args[0].untyped_storage()
    named = dict(zip((one.name for one in schema.arguments), args))
    named.update(kwargs or {})
    written = {tuple(sorted(one.alias_info.before_set)): named.get(one.name) for one in schema.arguments
               if one.alias_info is not None and one.alias_info.is_write}
    if not written or len(schema.returns) == 0:
        return out
    several = isinstance(out, (list, tuple))
    made = []
    for value, one in zip(out if several else [out], schema.returns):
        info = one.alias_info
        place = None if info is None or not info.is_write else tuple(sorted(info.before_set))
        made.append(written.get(place, value) if place is not None else value)
    return type(out)(made) if several else made[0]
