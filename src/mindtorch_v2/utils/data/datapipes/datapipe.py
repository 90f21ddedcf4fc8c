"""What all pipes have: methods that put another pipe behind them, and for streams one iterator at a time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset
from .iterator import PipeIterator

Pipe = TypeVar("Pipe", bound=type)

_MISSING = frozenset({"list_files", "open_files", "read_from_stream", "routed_decode", "trace_as_dataframe"})


class DataChunk(list):  # type: ignore[type-arg]
    """A batch as a list."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def raw_iterator(self) -> Iterator[Any]:
        """The items one by one."""
        yield from self.items


class _Chained:
    """Finds `pipe.map(f)` among the pipes that were registered under a name."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        if name in _MISSING:
            raise NotImplementedError(f"datapipes: .{name}() is not part of this runtime; use Dataset and DataLoader")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Let pipes have a method that calls `function(pipe, ...)`."""
        cls.functions[function_name] = function

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Chained, IterableDataset[Any]):
    """A stream of samples. A subclass defines `__iter__`.

    Only the latest iterator is valid: a pipe has one place at which it is. `fork` makes several of one.

    >>> from mindtorch_v2.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(4)).map(str).batch(2))
    [['0', '1'], ['2', '3']]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _iterators_made = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        begin = vars(cls).get("__iter__")
        if begin is not None:
            cls.__iter__ = _counted(begin)  # type: ignore[method-assign]

    def reset(self) -> None:
        """Called when an iteration begins; pipes that remember where they are begin anew."""


class MapDataPipe(_Chained, Dataset[Any]):
    """Samples by key. A subclass defines `__getitem__`, and `__len__` where it has one."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


def _counted(begin: Callable[[Any], Iterator[Any]]) -> Callable[[Any], PipeIterator]:
    """An `__iter__` whose iterators know whether there is a newer one, and are recorded by a profiler."""

    later = inspect.isgeneratorfunction(begin)  # nothing of it runs before the first sample is asked for

    @functools.wraps(begin)
    def started(self: Any) -> PipeIterator:
        made = PipeIterator(self, begin(self))
        if not later:
            made.take_over()
        return made

    return started


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Pipe], Pipe]:
    """Register a class of pipes under the name of a method that all pipes get."""

    def register(cls: Pipe) -> Pipe:
        (IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe).register_function(name, cls)
        return cls

    return register
