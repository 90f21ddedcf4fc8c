"""Switches for recording: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`; per thread."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .._dispatch.native import WALK
from .._dispatch.observer import HOOK
from .._dispatch.state import THREAD

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether ops on tensors that require grad are recorded; inside inference mode, the requested value."""
    state = THREAD.state
    return state.grad_inside if state.inference else state.grad


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return THREAD.state.inference


# The `before` of a mode that changed only `grad`, by the old value.
GRAD_WAS = {mode: (("grad", mode),) for mode in (False, True)}


class _GradMode:
    """A context manager that is also a decorator, for functions and generator functions."""

    before: tuple[tuple[str, bool], ...]  # attributes of the thread's state, and their old values

    def clone(self) -> _GradMode:
        """A fresh context with the same setting, for each call of a decorated function."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        _leave(self)

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                          "decorate functions or methods; decorate `__init__` to keep what this does.", FutureWarning,
                          stacklevel=2)
            function.__init__ = self(function.__init__)  # type: ignore[misc,method-assign]
            return function
        if is_generator_function(function):
            return wrap_generator(self.clone, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


GENERATOR = 0x20  # code flag; the inspect module has it too, but takes milliseconds to import


def is_generator_function(function: Any) -> bool:
    """Whether calling it makes a generator."""
    while isinstance(function, functools.partial):
        function = function.func
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & GENERATOR)


def wrap_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator with the mode on while it runs, and off while its caller does."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            with context():
                item = generator.send(None)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with context():
                        generator.close()
                    raise
                except BaseException as error:
                    with context():
                        item = generator.throw(error)
                else:
                    with context():
                        item = generator.send(sent)
        except StopIteration as stop:
            return stop.value

    return inside


class no_grad(_GradMode):
    """Do not record ops inside.

    >>> import mindtorch_v2 as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        # `@no_grad` without parentheses.
        made = object.__new__(cls)
        if function is not None:
            return made(function)
        return made

    def __enter__(self) -> None:
        state = THREAD.state
        if state.inference:
            self.before = (("grad_inside", state.grad_inside),)
            state.grad_inside = False
            return
        self.before = GRAD_WAS[state.grad]
        state.grad = False


class enable_grad(no_grad):
    """Record ops inside, even within `no_grad`; not within `inference_mode`, where nothing is recorded."""

    def __enter__(self) -> None:
        state = THREAD.state
        if state.inference:
            self.before = (("grad_inside", state.grad_inside),)
            state.grad_inside = True
            return
        self.before = GRAD_WAS[state.grad]
        state.grad = True


class set_grad_enabled(_GradMode):
    """Turn recording on or off; takes effect at once and is undone when used as a context manager."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                            f"{type(mode).__name__}")
        state = THREAD.state
        self.before = (("grad_inside", state.grad_inside),) if state.inference else GRAD_WAS[state.grad]
        self.mode = mode
        set_grad(mode)

    @property
    def prev(self) -> bool:
        """What the setting was before."""
        return self.before[0][1]

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __call__(self, function: F) -> F:
        _leave(self)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        set_grad(self.mode)


class inference_mode(_GradMode):
    """Like `no_grad`, for code that never needs gradients."""

    def __new__(cls, mode: Any = True) -> Any:
        made = object.__new__(cls)
        if not isinstance(mode, bool):  # `@inference_mode` without parentheses
            made.mode = True
            return made(mode)
        return made

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        state = THREAD.state
        inferred = state.inference
        self.before = (("grad", state.grad), ("inference", inferred), ("grad_inside", state.grad_inside))
        self.change = bool(self.mode) - inferred
        _count_inference(self.change)
        state.inference, state.grad_inside = bool(self.mode), False
        state.grad = not self.mode and (state.grad or inferred)

    def __exit__(self, *exc: object) -> None:
        _leave(self)
        self.left()

    def left(self) -> None:
        """Restore the thread's state."""
        _count_inference(-self.change)


def set_grad(mode: bool) -> None:
    """Turn recording on or off in this thread. In inference mode nothing is recorded, but the value is remembered."""
    state = THREAD.state
    if state.inference:
        state.grad_inside = mode
    else:
        state.grad = mode


def _leave(mode: _GradMode) -> None:
    """Restore what a mode has changed. `_native/engine/modes.c`, if it was built, does so safely under Ctrl-C."""
    state = THREAD.state
    for name, value in mode.before:
        setattr(state, name, value)


if WALK is not None:
    _GradMode.__exit__, inference_mode.__exit__ = WALK.exits(THREAD)  # type: ignore[method-assign]

_LOCK = threading.Lock()


def _count_inference(change: int) -> None:
    """Count threads inside inference mode: only while there is one do ops check whether they are in it."""
    with _LOCK:
        HOOK["INFERENCE"] += change
        HOOK["INFERENCE_SEEN"] = True
