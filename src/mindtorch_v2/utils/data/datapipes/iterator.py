"""The iterator of a stream: valid until the next one is made, and recorded by a profiler."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from types import FunctionType
from typing import Any

from ....profiler.record_function import record_function
from ....profiler.recorder import Recorder

_SUFFIXES = ("IterDataPipe", "MapDataPipe")


class _SnapshotState(Enum):
    """Where a pipe is: not begun, set to continue at a later place, or running."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


class PipeIterator:
    """Goes through a pipe once. Attributes that it lacks are those of the pipe's own iterator."""

    def __init__(self, pipe: Any, inner: Iterator[Any]) -> None:
        self.pipe = pipe
        self.inner = inner
        self.number = 0  # among the iterators of the pipe that have begun

    def take_over(self) -> None:
        """Be the pipe's iterator from now on."""
        pipe = self.pipe
        pipe._iterators_made += 1
        self.number = pipe._iterators_made
        pipe._number_of_samples_yielded = 0
        pipe._snapshot_state = _SnapshotState.Iterating
        pipe.reset()

    def __iter__(self) -> PipeIterator:
        return self

    def __next__(self) -> Any:
        if not self.number:
            self.take_over()
        elif self.pipe._iterators_made != self.number:
            raise RuntimeError("This iterator has been invalidated because another iterator has been created from the "
                               f"same IterDataPipe: {described(self.pipe, short=False)}\nA stream has one place at "
                               "which it is; `.fork()` makes several streams of it.")
        try:
            if Recorder.running is None:
                sample = next(self.inner)
            else:
                with record_function(described(self.pipe)):
                    sample = next(self.inner)
        except StopIteration:
            raise
        except Exception as error:
            if self.pipe.says_where:
                _say_where(error, self.pipe)
            raise
        if self.inner is not self.pipe:  # which counts what it gives itself
            self.pipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _say_where(error: Exception, pipe: Any) -> None:
    """Add the pipe to an error's text, unless a pipe before it is there."""
    said = error.args[0] if error.args else None
    if isinstance(said, str) and "thrown by __iter__ of" not in said:
        where = f"\nThis exception is thrown by __iter__ of {described(pipe, short=False)}"
        error.args = (said + where, *error.args[1:])


def described(pipe: Any, short: bool = True) -> str:
    """A pipe with the arguments that it was made with, as far as it keeps them: `Batcher(batch_size=2, …)`."""
    names = sorted(name for name in inspect.signature(type(pipe).__init__).parameters if name in vars(pipe))
    given = ", ".join(f"{name}={_text(getattr(pipe, name), short)}" for name in names)
    return f"{_name(pipe, short)}({given})"


def _name(pipe: Any, short: bool) -> str:
    name = type(pipe).__qualname__
    for suffix in _SUFFIXES:
        if short and name != suffix:
            name = name.removesuffix(suffix)
    return name


def _text(value: Any, short: bool) -> str:
    if type(value).__name__.endswith(_SUFFIXES):
        return _name(value, short)
    if isinstance(value, tuple):
        return f"({', '.join(_text(item, short) for item in value)})"
    if isinstance(value, FunctionType):
        return value.__name__
    return str(value) if short else repr(value)
