"""`Recording`: a trace with PyTorch's results, from any source."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from .devices import DEVICES, TIMED
from .export import chrome
from .export.memory_timeline import MemoryProfileTimeline
from .schema import FLAGS
from .store import arrow
from .trace import Trace
from .views.averages import averages_of
from .views.clocks import ClockRow, clocks
from .views.collectives import CollectiveRow, collectives
from .views.copies import CopyRow, copies
from .views.event_fields import Values
from .views.event_list import EventList
from .views.memory_profile import MemoryProfile
from .views.module_tree import ModuleTree, module_tree
from .views.rows import Rows
from .views.step_summary import StepSummary, step_summary
from .views.trace_events import events_of

Path = str | os.PathLike[str]


class Recording:
    """What `mtprof.load` returns, and what a stopped profiler has; `trace` has the columns."""

    def __init__(self, trace: Trace, *, use_device: str | None = None, source: str = "",
                 with_metadata: bool = False, values: Values | None = None) -> None:
        self.trace = trace
        self.source = source
        self._use_device = use_device
        self.profile_memory = trace.has("memory")
        self.with_flops = bool(trace.metadata.get("with_flops"))
        self._with_metadata = with_metadata
        self._values = values
        self._events: EventList | None = None
        self._averages: dict[tuple[bool, int, bool, bool], EventList] = {}

    @cached_property
    def use_device(self) -> str | None:
        """The device besides the CPU in the results, by PyTorch's word for it."""
        return device_word(self.trace) if self._use_device is None else self._use_device or None

    def __repr__(self) -> str:
        trace, told = self.trace, [flag for flag in FLAGS if self.trace.metadata.get(flag)]
        seconds = (trace.end_ns - trace.start_ns) / 1e9
        return (f"<Recording{f' {self.source}' if self.source else ''}: {len(trace):,} events, {seconds:.3f} s, "
                f"{len(trace.threads)} threads{', ' if told else ''}{', '.join(told)}>")

    def _repr_html_(self) -> str:
        from .notebook import reprs

        return reprs.recording(self)

    def events(self) -> EventList:
        """All events, in order of their start."""
        if self._events is None:
            self._events = events_of(self.trace, use_device=self.use_device, profile_memory=self.profile_memory,
                                     with_flops=self.with_flops, with_metadata=self._with_metadata)
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False, *, group_by_module: bool = False) -> EventList:
        """Events grouped by name and, if asked, by input shapes, innermost stack entries, overload or module."""
        if group_by_module and not (self.trace.events["module"] >= 0).any():
            self.trace.modules  # noqa: B018  (raises an error that says how to record it)
        key = (group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module)
        if key not in self._averages:
            self._averages[key] = averages_of(
                self.trace, group_by_input_shapes=group_by_input_shape, group_by_stack_n=group_by_stack_n,
                group_by_overload_name=group_by_overload_name, group_by_module=group_by_module,
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops)
        return self._averages[key]

    def table(self, sort_by: str | None = "self_cpu_time_total", row_limit: int = 30, **options: Any) -> str:
        """The averages as text; `options` are those of `EventList.table`."""
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit, **options)

    def module_tree(self) -> ModuleTree:
        """Time, memory, FLOPs and parameters by the modules of a model."""
        return module_tree(self.trace)

    def step_summary(self) -> StepSummary:
        """For each step the time for data, forward, backward and optimizer, and the rest."""
        return step_summary(self.trace)

    def copies(self) -> Rows[CopyRow]:
        """Copies to, from and on devices by direction: how much, how long, how fast."""
        return copies(self.trace)

    def collectives(self) -> Rows[CollectiveRow]:
        """Communication between ranks by operation and group: how much, how long, how fast."""
        return collectives(self.trace)

    def clocks(self) -> Rows[ClockRow]:
        """How well device times fit the host's."""
        return clocks(self.trace)

    def memory_profile(self) -> MemoryProfile:
        """Memory over time, with its categories."""
        for table in ("memory", "uses", "roles"):
            getattr(self.trace, table)  # raises an error that says what is missing
        return MemoryProfile(self.trace, self._values)

    def to_dataframe(self) -> Any:
        """The events as a pandas DataFrame."""
        return self.events().to_dataframe()

    def export_chrome_trace(self, path: Path) -> None:
        """Write the trace in Chrome's JSON format; a name that ends in `.gz` is compressed."""
        chrome.write(self.trace, path)

    def export_stacks(self, path: Path, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph."""
        getattr(self.trace, "stacks")  # noqa: B009  (raises an error that says what is missing)
        self.events().export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: Path, device: str | None = None) -> None:
        """Write memory by category over time: a page (`.html`), or JSON."""
        default = f"{self.use_device}:0" if self.use_device else "cpu"
        MemoryProfileTimeline(self.memory_profile()).write(path, default if device is None else device)

    def save(self, path: Path) -> None:
        """Write everything to a trace file, which `mtprof.load` reads back unchanged."""
        arrow.save(self.trace, path)


def device_word(trace: Trace) -> str | None:
    """The device, besides the CPU, that has work in a trace."""
    device = trace.events["device"]
    for kind in TIMED if device.any() else ():
        if (device == kind).any():
            return DEVICES[kind].word
    return None
