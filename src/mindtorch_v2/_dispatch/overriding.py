"""`__torch_function__`: classes and modes that take functions over, and how a call is offered to them.

Ops on plain tensors must not pay for this, so nothing asks until somebody could answer. `_faces` puts the question into
the public functions when the first instance of such a class is made or met, or when the first mode is entered.
"""

from __future__ import annotations

import enum
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from .._tensor import DISABLED, OVERRIDING, Tensor

PACKAGE = __name__.partition(".")[0]
# Parts of the package that are Python in PyTorch too: their calls are offered like a program's own calls.
OUTSIDE = tuple(f"{PACKAGE}.{name}" for name in ("nn.modules", "nn.init", "nn.utils", "optim", "distributions",
                                              "utils"))


class _State(threading.local):
    """A thread's modes, innermost last, and what is turned off in it."""

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.classes_off = 0
        self.all_off = 0
        self.skip = False  # the next question is not asked


STATE = _State()
# One entry for each mode that is active in any thread; empty most of the time.
ACTIVE: list[Any] = []


# One entry once there are instances of classes that take functions over.
CLASSES: list[bool] = []


def faces() -> Any:
    """The module that makes public functions ask; most programs never load it."""
    return importlib.import_module(f"{PACKAGE}._faces")


def arm(for_good: bool) -> None:
    """Make the public functions ask, permanently or until the last mode is left."""
    if for_good and not CLASSES:
        CLASSES.append(True)
    faces().FACES.arm(for_good)


def first_instance(cls: type) -> None:
    """An instance of a subclass of Tensor that takes functions over is about to be made."""
    arm(True)


def watch_ops(tensor: Tensor) -> None:
    """An instance of a class with `__torch_dispatch__` was made: while it lives, ops ask for such arguments."""
    importlib.import_module(f"{PACKAGE}._dispatch.dispatch_modes").watch(tensor)


def dispatched_to_nobody(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op that must not ask its arguments' classes."""
    with importlib.import_module(f"{PACKAGE}._dispatch.dispatch_modes").DisableTorchDispatch():
        return func(*args, **kwargs)


class DisableTorchFunctionSubclass:
    """Inside, classes do not take functions over; modes still do."""

    def __enter__(self) -> None:
        STATE.classes_off += 1

    def __exit__(self, *exc: object) -> None:
        STATE.classes_off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither classes nor modes take functions over."""

    def __enter__(self) -> None:
        super().__enter__()
        STATE.all_off += 1

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        STATE.all_off -= 1


class EnableTorchFunction:
    """Classes and modes may take functions over as long as the object lives, and inside it as a context."""

    def __init__(self) -> None:
        self.before: tuple[int, int] | None = (STATE.classes_off, STATE.all_off)
        STATE.classes_off = STATE.all_off = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        if self.before is not None:
            (STATE.classes_off, STATE.all_off), self.before = self.before, None

    def __del__(self) -> None:
        self.__exit__()


class TorchFunctionState(enum.Enum):
    """What may take functions over in this thread: classes and modes, only modes, or nothing."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def get_torch_function_state() -> TorchFunctionState:
    """The state of this thread."""
    return (TorchFunctionState.ALL_DISABLED if STATE.all_off else
            TorchFunctionState.SUBCLASSES_DISABLED if STATE.classes_off else TorchFunctionState.ENABLED)


def set_torch_function_state(state: TorchFunctionState) -> None:
    """Leave or enter a state, whatever contexts are open."""
    STATE.classes_off = int(state is not TorchFunctionState.ENABLED)
    STATE.all_off = int(state is TorchFunctionState.ALL_DISABLED)


def overrides(kind: type) -> bool:
    """Whether instances of a class take functions over."""
    return kind is not Tensor and getattr(kind, "__torch_function__", DISABLED) is not DISABLED


def overriders(values: Iterable[Any], with_tensors: bool = False) -> list[Any]:
    """The objects to ask: one value of each class that takes over, subclasses before their bases."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if not (overrides(kind) or (with_tensors and kind is Tensor)) or any(type(one) is kind for one in found):
            continue
        place = next((i for i, one in enumerate(found) if issubclass(kind, type(one))), len(found))
        found.insert(place, value)
    return found


def flat(values: Iterable[Any]) -> Iterable[Any]:
    """Arguments, and those inside lists."""
    for value in values:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value


_INTERNAL: dict[str, bool] = {}


def is_internal(frame: FrameType) -> bool:
    """Whether a frame belongs to the runtime, whose own calls are not offered."""
    name = frame.f_globals.get("__name__", "")
    known = _INTERNAL.get(name)
    if known is None:
        known = _INTERNAL[name] = (name + ".").startswith(PACKAGE + ".") and not name.startswith(OUTSIDE)
    return known


def _plain_method(function: Any) -> type[Warning]:
    """The category of the warning: PyTorch's Python functions give another one than those in C++."""
    return DeprecationWarning if ".functional." in faces().name_of(function) else UserWarning


def method_of_mode(mode: Any, name: str) -> Callable[..., Any]:
    """What a mode answers with, a method of the mode itself."""
    method: Callable[..., Any] = getattr(mode, name)
    if isinstance(getattr(method, "__self__", mode), type):
        raise RuntimeError(f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain "
                           "method")
    return method


def offer(function: Any, asked: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any], operator: bool = False,
          mode: bool = True) -> Any:
    """Let the innermost mode, then the arguments' classes answer a call."""
    state = STATE
    types = tuple(map(type, asked))
    refused = []
    if mode and state.modes and not state.all_off:
        top = state.modes.pop()
        try:
            result = method_of_mode(top, "__torch_function__")(function, types, args, kwargs)
        finally:
            state.modes.append(top)
        if result is not NotImplemented:
            return result
        refused.append(f"  - mode object {top!r}")
    for one in asked:
        method = one.__torch_function__
        if getattr(method, "__self__", None) is one:
            warnings.warn("Defining your `__torch_function__` as a plain method is deprecated, since it may be called "
                          "before there is an instance; make it a classmethod.", _plain_method(function), stacklevel=3)
        result = method(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
        refused.append(f"  - tensor subclass {type(one)}")
    if operator:
        return NotImplemented
    listed = "\n".join(refused)
    raise TypeError(f"Multiple dispatch failed for '{faces().name_of(function)}'; all __torch_function__ handlers "
                    f"returned NotImplemented:\n\n{listed}")


def offered_op(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: FrameType) -> tuple[Any] | None:
    """The answer, in a tuple, of a mode or a class to a call of an object of `torch.ops`; None if nobody takes it."""
    mode = bool(STATE.modes) and not STATE.all_off
    asked = [] if STATE.classes_off else overriders(flat((*args, *kwargs.values())))
    return (offer(op, asked, args, kwargs),) if (asked or mode) and not is_internal(caller) else None


def default_override(cls: type, function: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                     kwargs: dict[str, Any] | None = None) -> Any:
    """The default of a subclass of Tensor: results belong to the subclass too."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = function(*args, **(kwargs or {}))
        return result if function in AS_THEY_ARE else converted(result, cls)


# Functions whose results stay unchanged.
AS_THEY_ARE = {Tensor.grad.__get__}


def converted(result: Any, cls: type) -> Any:
    """A result with every tensor in it converted to the subclass."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [converted(one, cls) for one in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


# -- objects that are not tensors, when an op first meets one ----------------------------------------------------------


class NobodyAnswers(TypeError):
    """All objects that were asked about an op returned NotImplemented."""


class Taken:
    """The result of an op that could not use its arguments, after all: the answer of one of them."""

    def __init__(self, result: Any) -> None:
        self.result = result


class _Unclaimed(TypeError):
    """An argument wants to take over the function, but the program called a function further out."""


def claim(values: tuple[Any, ...], frame: FrameType, named: Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
          ) -> Any:
    """The answer of an argument that is not a tensor, or None if there is no such argument.

    `frame` belongs to the op that failed, `named` gives its public function and its arguments.
    """
    if STATE.classes_off:
        return None
    if not any(overrides(type(value)) and not isinstance(value, Tensor) for value in flat(values)):
        return None
    arm(True)
    top, above = None, frame.f_back
    while above is not None and is_internal(above):
        top, above = above, above.f_back
    if top is not None and top.f_globals is frame.f_globals:
        return _Unclaimed("an argument takes this function over")
    function, args, kwargs = (None if top is None else faces().face_of_frame(top)) or named()
    asked = overriders(flat((*args, *kwargs.values())))
    return Taken(offer(function, asked, args, kwargs, mode=False)) if asked else None


OVERRIDING.append(sys.modules[__name__])
