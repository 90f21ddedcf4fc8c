"""`_RecordFunctionFast`: a scope for hot paths, with positional and keyword values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from mtprof.trace import Arguments

from .._dispatch.describe import describe_all, describe_value, store
from .._dispatch.observer import HOOK, event_id
from .._dispatch.state import THREAD

clock = HOOK["clock"]
_PLAIN = (bool, int, float, complex, str)
_NUMBERS: dict[Any, int] = {}  # descriptions with names, by content


class _RecordFunctionFast:
    """Like `record_function`, but shown as an op and reusable; its values are recorded if shapes are.

    A value "scope" of "user_scope" makes it an annotation, as `record_function` does.

    >>> import mindtorch_v2 as torch
    >>> from mindtorch_v2._C._profiler import _RecordFunctionFast
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     with _RecordFunctionFast("kernel", [torch.ones(2), 5], {"stream": 0}):
    ...         pass
    >>> event = prof.events()[-1]
    >>> event.name, event.concrete_inputs, event.kwinputs
    ('kernel', [None, 5], {'stream': 0})
    """

    __slots__ = ("_annotation", "_event", "_name", "_named", "_noted", "_place", "_start", "_values")

    def __init__(self, name: str, input_values: Sequence[Any] | None = None,
                 keyword_values: Mapping[str, Any] | None = None) -> None:
        # PyTorch ends the process for mistakes that raise an error here.
        if not isinstance(name, str):
            raise TypeError(f"The name passed to RecordFunctionFast must be a string, got {type(name).__name__}")
        if input_values is not None and not isinstance(input_values, (list, tuple)):
            raise TypeError(f"input_values must be a list or tuple, got {type(input_values).__name__}")
        if keyword_values is not None and not isinstance(keyword_values, dict):
            raise TypeError(f"keyword_values must be dict, got {type(keyword_values).__name__}")
        self._name = name
        self._event = event_id(name, "op")
        self._values = tuple(input_values or ())
        self._named = dict(keyword_values or {})
        self._annotation = event_id(name, "scope") if self._named.get("scope") == "user_scope" else 0
        self._start = 0
        self._noted: Any = None

    def __enter__(self) -> None:
        if HOOK["OBSERVING"]:
            listener = HOOK["TAP"]
            if listener is not None:
                self._noted = listener.enter(self._event, -1, self._values)
            self._place = HOOK["place"]() if HOOK["CALLS"] else 0
            self._start = clock()

    def __exit__(self, *exc: object) -> None:
        if self._start:
            given = self._describe() if HOOK["DESCRIBE"] and (self._values or self._named) else None
            # As in PyTorch, the kind is known only if values are recorded.
            event = self._annotation if given is not None and self._annotation else self._event
            THREAD.state.extend((event, self._start, clock(), self._place - 1, given))
            self._start = 0
            if self._noted is not None:
                self._noted.leave()
                self._noted = None

    def _describe(self) -> int:
        if not self._named:
            return describe_all(self._values)
        described = tuple(describe_value(value) for value in self._values)
        named = {key: _plain(key, value) for key, value in self._named.items()}
        key = repr((described, named))
        found = _NUMBERS.get(key)
        if found is None:
            found = store(_NUMBERS, key, Arguments(described, named))
        return found


def _plain(key: str, value: Any) -> Any:
    """A value that a recording can hold; as in PyTorch, others become "NULL", and lists of mixed types None."""
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple) and all(isinstance(item, _PLAIN) and not isinstance(item, str) for item in value):
        return value
    if isinstance(value, list):
        kinds = set(map(type, value))
        if len(kinds) <= 1 and kinds <= set(_PLAIN):
            return list(value)
        warnings.warn(f"Unable to infer type of value in the List for keyword: {key}", UserWarning, stacklevel=3)
        return None
    warnings.warn(f"Unable to infer type of value for keyword: {key}", UserWarning, stacklevel=3)
    return "NULL"
