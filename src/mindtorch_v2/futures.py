"""`torch.futures`: values that come later, and what to do when they come."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from ._device import device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that somebody, most likely another thread, will set.

    >>> import mindtorch_v2 as torch
    >>> first = torch.futures.Future()
    >>> second = first.then(lambda done: done.value() + 1)
    >>> first.set_result(1)
    >>> second.wait()
    2
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        for one in map(device, devices or ()):
            if one.type != "cpu":
                raise RuntimeError(f"PyTorch is not linked with support for {one.type} devices: a future takes none")
            if one.index is None:
                raise ValueError(f"Expected devices to have indices, got {one}")
        self._changed = threading.Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether it has a value or an exception."""
        return self._is_done

    def wait(self) -> T:
        """Wait for the value, or raise the exception that came instead."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> T:
        """The value, which must be there already."""
        if not self._is_done:
            raise RuntimeError("the future is not completed: wait() waits for its value")
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of what the callback will return, which is called with this future when it is completed."""
        _check_callable("then", callback)
        following: Future[Any] = Future()

        def run(done: Future[T]) -> None:
            try:
                outcome = callback(done)
            except Exception as error:
                failure = RuntimeError("Got the following error when running the callback: "
                                       f"{type(error).__name__}: {error}")
                failure.__cause__ = error
                following.set_exception(failure)
            else:
                following.set_result(outcome)

        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call a function with this future when it is completed, or at once if it is already.

        What it raises is logged: neither the code that completes the future nor the other callbacks can handle it.
        """
        _check_callable("add_done_callback", callback)
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def _call(self, callback: Callable[[Future[T]], Any]) -> None:
        try:
            callback(self)
        except Exception:
            logging.getLogger(__name__).exception("Got the following error when running the callback")

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def set_result(self, result: T) -> None:
        """Complete it with a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete it with an exception, which `wait` and `value` will raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can "
                                   "only be marked completed once.")
            self._result, self._error, self._is_done = result, error, True
            waiting, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in waiting:
            self._call(callback)


def _check_callable(method: str, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"{method}(): incompatible function arguments: {type(callback).__name__} is not callable")


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of these futures, completed when they all are; of their first error if one failed."""
    if not isinstance(futures, (list, tuple)) or not all(isinstance(one, Future) for one in futures):
        raise TypeError("collect_all(): incompatible function arguments: it takes a list of futures")
    all_of_them: Future[list[Future[Any]]] = Future()
    lock = threading.Lock()
    missing = len(futures)

    def one_less(_: Future[Any]) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            failed = next((one._error for one in futures if one._error is not None), None)
            all_of_them._complete(list(futures) if failed is None else None, failed)

    if not futures:
        all_of_them.set_result([])
    for future in futures:
        future.add_done_callback(one_less)
    return all_of_them


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for the values of all these futures."""
    return [future.wait() for future in collect_all(futures).wait()]
