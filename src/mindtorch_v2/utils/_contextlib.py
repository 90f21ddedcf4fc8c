"""`torch.utils._contextlib`: contexts that are decorators too."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose body runs inside the context, and whose caller does not."""

    @functools.wraps(func)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = func(*args, **kwargs)
        step: Callable[[], Any] = lambda: inner.send(None)
        while True:
            try:
                with ctx_factory():
                    value = step()
            except StopIteration as ended:
                return ended.value
            try:
                sent = yield value
            except GeneratorExit:
                with ctx_factory():
                    inner.close()
                raise
            except BaseException:
                step = functools.partial(inner.throw, sys.exc_info()[1])
            else:
                step = functools.partial(inner.send, sent)

    return generator


def context_decorator(ctx: Any, func: Any) -> Any:
    """A function that runs inside a context, given as such or as a function that makes one."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), "
                             "making it ambiguous which interface to use. If it is meant as a factory, wrap it in a "
                             "lambda.")
    factory = ctx if callable(ctx) else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; it is ambiguous whether or not only the constructor or all "
                           "methods should have the context manager applied")
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(factory, func)

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return func(*args, **kwargs)

    return decorated


class _DecoratorContextManager:
    """A context that decorates functions: each call is inside a copy of it."""

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                          "decorate functions or methods.", FutureWarning, stacklevel=2)
            orig_func.__init__ = self(orig_func.__init__)  # type: ignore[method-assign]
            return orig_func
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """A copy of the context."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, also without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
