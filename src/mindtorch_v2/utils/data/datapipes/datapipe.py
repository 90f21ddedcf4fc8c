"""What all pipes have: methods that put another pipe behind them, and for streams one iterator at a time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset
from .iterator import PipeIterator, _SnapshotState

Pipe = TypeVar("Pipe", bound=type)

_MISSING = frozenset({"trace_as_dataframe"})


class DataChunk(list):
    """A batch as a list."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def raw_iterator(self) -> Iterator[Any]:
        """The items one by one."""
        yield from self.items

    def as_str(self, indent: str = "") -> str:
        """The items as a text."""
        return f"{indent}[{', '.join(map(str, self))}]"


class _Chained:
    """Finds `pipe.map(f)` among the pipes that were registered under a name; asks a program how a pipe is pickled."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    getstate_hook: ClassVar[Callable[[Any], Any] | None] = None
    reduce_ex_hook: ClassVar[Callable[[Any], Any] | None] = None

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            function = type(self).functions[name]
            return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",),
                                            updated=())
        if name in _MISSING:
            raise NotImplementedError(f"datapipes: .{name}() is not part of this runtime; use Dataset and DataLoader")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return self._state() if hook is None else hook(self._state())

    def _state(self) -> Any:
        """What is pickled; pipes leave out what belongs to an iteration."""
        return self.__dict__

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass  # the hook does not handle this pipe
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Ask a function for what is pickled of a pipe, given its attributes."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = None if hook_fn is None else staticmethod(hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Ask a function how a pipe is pickled; it may raise NotImplementedError."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = None if hook_fn is None else staticmethod(hook_fn)

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable[..., Any],
                                      enable_df_api_tracing: bool = False) -> None:
        """Let pipes have a method that makes a pipe of a class behind them, under a name that is free."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Let pipes have a method that calls `function(pipe, ...)`."""
        cls.functions[function_name] = function

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Chained, IterableDataset[Any]):
    """A stream of samples. A subclass defines `__iter__`.

    Only the latest iterator is valid: a pipe has one position. `fork` makes several of one.

    >>> from mindtorch_v2.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(4)).map(str).batch(2))
    [['0', '1'], ['2', '3']]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    says_where: ClassVar[bool] = True
    """Whether errors that pass through it name it."""
    _iterators_made = 0
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: PipeIterator | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        begin, step = vars(cls).get("__iter__"), vars(cls).get("__next__")
        if begin is not None:
            cls.__iter__ = _counted(begin)  # type: ignore[method-assign]
        if step is not None:
            cls.__next__ = _counting(step)  # type: ignore[attr-defined]

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
        if self._snapshot_state is _SnapshotState.Restored:
            self._snapshot_state = _SnapshotState.Iterating
            restored, self._fast_forward_iterator = self._fast_forward_iterator, None
            return restored
        made = PipeIterator(self, begin(self))
        if not later:
            made.take_over()
        return made

    return started


def _counting(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A `__next__` that counts the samples."""

    @functools.wraps(step)
    def taken(self: Any) -> Any:
        sample = step(self)
        self._number_of_samples_yielded += 1
        return sample

    return taken


def functional_datapipe(name: str, enable_df_api_tracing: bool = False) -> Callable[[Pipe], Pipe]:
    """Register a class of pipes under the name of a method that all pipes get."""

    def register(cls: Pipe) -> Pipe:
        if issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(name, cls, enable_df_api_tracing)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(name, cls)
        return cls

    return register
