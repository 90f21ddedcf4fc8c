"""`ProfilerResult`: a finished recording in the form of PyTorch's internals, `prof.profiler.kineto_results`."""

from __future__ import annotations

import os
from functools import cache, cached_property

from mtprof.export import chrome
from mtprof.schema import Kind
from mtprof.tables.select import select
from mtprof.trace import Trace
from mtprof.views.event_fields import Values
from mtprof.views.event_tree import ProfilerEvent
from mtprof.views.kineto_events import KinetoEvent, KinetoFacts, kineto_events

from .._device import device
from .._dispatch.overload_names import overload_name
from .._dispatch.registry import OVERLOADS
from .._dtype import dtype_from_name
from .._tensor import sparse_coo, strided

_NAMESPACE = "aten::"


@cache
def _operands(name: str, overload: str) -> frozenset[int]:
    """Which arguments of an op are tensors."""
    base = name.removeprefix(_NAMESPACE)
    for ops, inplace in ((OVERLOADS.get(base, ()), False),
                         (OVERLOADS.get(base[:-1], ()) if base.endswith("_") else (), True)):
        for op in ops:
            if overload_name(op, inplace) == overload:
                return frozenset(place for place, argument in enumerate(op.schema.arguments)
                                 if argument.is_tensor and not argument.is_list)
    return frozenset()


VALUES = Values(dtype=dtype_from_name, device=device, layout=strided, sparse=sparse_coo, operands=_operands)


class ProfilerResult:
    """Events in a list and as trees.

    >>> import mindtorch_v2 as torch
    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(2)
    >>> root, = prof.profiler.kineto_results.experimental_event_tree()
    >>> root.name, [child.name for child in root.children]
    ('aten::ones', ['aten::empty', 'aten::fill_'])
    """

    def __init__(self, trace: Trace) -> None:
        # PyTorch has no event for preparing ops at their first use.
        self._facts = KinetoFacts(select(trace, {"events": trace.events["kind"] != Kind.FIRST_USE}), VALUES)

    @cached_property
    def _roots(self) -> list[ProfilerEvent]:
        return self._facts.tree.roots()

    def events(self) -> list[KinetoEvent]:
        """All events in order of their start."""
        return kineto_events(self._facts)

    def experimental_event_tree(self) -> list[ProfilerEvent]:
        """The outermost events, with all others below them."""
        return self._roots

    def trace_start_ns(self) -> int:
        """When recording began, nanoseconds since 1970."""
        return self._facts.trace.start_ns + self._facts.trace.epoch_ns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace in Chrome's JSON format."""
        chrome.write(self._facts.trace, path)
