"""One recording from start to results: `torch.autograd.profiler.profile`, the base of `torch.profiler.profile`."""

from __future__ import annotations

import atexit
import json
import os
import sys
import uuid
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

from mtprof.export import chrome
from mtprof.export.categories import of_categories
from mtprof.own_metadata import STEP_STARTS
from mtprof.recording import Recording
from mtprof.schema import FLAGS, Kind
from mtprof.store import arrow
from mtprof.tables.step_starts import with_steps_in_calls
from mtprof.trace import Trace
from mtprof.views.event_list import EventList

from .._backends.cpu import providers
from .._dispatch.native import NATIVE
from . import saving
from .activity import ProfilerActivity, _ExperimentalConfig, available, categories, check_filters, consistent, device_of
from .device_work import DeviceWatch
from .event_ids import reserve
from .leaving import Leaving
from .options import Options
from .post_processing import events_within
from .profiler_state import RUNNING, ActiveProfilerType
from .recorder import Recorder, assemble, drop, with_children
from .recorder.overhead import overhead_of
from .result import VALUES, ProfilerResult
from .saving import Saver
from .stats import _ProfilerStats, microseconds_since
from .switches import SWITCHES, without_lists

UNDER_WAY: weakref.WeakSet[profile] = weakref.WeakSet()
COMING_METADATA: dict[str, str] = {}  # for the next recording


class profile:
    """Record what runs inside.

    >>> import mindtorch_v2 as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.relu(torch.ones(2))
    >>> [row.key for row in prof.key_averages()]
    ['aten::ones', 'aten::empty', 'aten::fill_', 'aten::relu', 'aten::clamp_min']
    """

    kind = ActiveProfilerType.KINETO  # the value of `torch._C._autograd._profiler_type` while it records

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[ProfilerActivity, set[str]] | None = None,
        max_events: int | None = None,
        save_to: str | os.PathLike[str] | None = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn("The attribute `use_cuda` is deprecated, use use_device='cuda' instead", FutureWarning,
                          stacklevel=2)
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = available(use_device, stacklevel=2)
        self.use_cuda = self.use_device == "cuda"
        if not use_cpu and self.use_device is None:
            raise AssertionError("No activities specified for the profiler")
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.experimental_config = consistent(experimental_config, with_stack)
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.post_processing_timeout_s = post_processing_timeout_s
        self._partial: EventList | None = None  # the events made in that time
        self.activity_filters = activity_filters or {}
        if max_events is not None and max_events <= 0:
            raise ValueError(f"max_events must be positive, got {max_events}")
        self.max_events = max_events
        self.save_to = save_to
        self._saver: Saver | None = None
        if save_to is not None:
            saving.check(use_device=self.use_device)
        self.entered = False
        self._was_entered = False  # as a context, which works only once
        self.trace_id = ""
        self.metadata: dict[str, str] = {}
        self.profiling_start_time_ns = 0
        self.profiling_end_time_ns = 0
        self._recorder: Recorder | None = None
        # Only while it records: a Ctrl-C during a finalizer is lost, so a profiler that has ended has none.
        self._guard: weakref.finalize[Any, Any] | None = None
        self._kernels: providers.Tally | None = None
        self._devices: DeviceWatch | None = None
        self._trace: Trace | None = None
        self._recording: Recording | None = None
        self._result: ProfilerResult | None = None
        self._switches = SWITCHES
        self._stats = _ProfilerStats()

    # -- life cycle ------------------------------------------------------------------------------------------------

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered or self._was_entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        try:
            self._was_entered = True
            self._prepare_trace()
            self._start_trace()
            return self
        except BaseException:
            self._give_up()
            raise

    def _prepare_trace(self) -> None:
        check_filters(self.activity_filters)
        self.entered = True
        self._stats = _ProfilerStats()
        self.trace_id = self.create_trace_id()
        self._switches = replace(SWITCHES)
        began = perf_counter_ns()
        self._recorder = Recorder(self._options())
        self._devices = DeviceWatch((self.use_device,), self.profile_memory) if self.use_device is not None else None
        self._stats.profiler_prepare_call_duration_us = microseconds_since(began)
        self._trace = None
        self._recording = None
        self._result = None
        self._partial = None

    def _options(self) -> Options:
        return Options(shapes=self.record_shapes, memory=self.profile_memory, stacks=self.with_stack,
                       modules=self.with_modules, flops=self.with_flops, max_events=self.max_events,
                       collections=self.experimental_config.record_python_gc_info,
                       save_to=None if self.save_to is None else os.fspath(self.save_to))

    def _start_trace(self) -> None:
        if self._recorder is None:
            raise RuntimeError("the profiler was started before it was prepared")
        try:
            if self.use_cpu:
                began = perf_counter_ns()
                RUNNING[id(self)] = self.kind
                self._guard = weakref.finalize(self, _dropped, id(self), self._recorder, self._devices)
                self._guard.atexit = False  # see `_end_with_the_interpreter`
                self.metadata.update(COMING_METADATA)
                COMING_METADATA.clear()
                UNDER_WAY.add(self)
                if self.save_to is not None:
                    self._saver = Saver(self._recorder, self.save_to, {"trace_id": self.trace_id, **self._flags()})
                self._recorder.start()
                if self._saver is not None:
                    self._saver.start()
                self._stats.profiler_enable_call_duration_us = microseconds_since(began)
            if not self.use_cpu:
                self._recorder.begin_time()
            if self._devices is not None:
                self._devices.start()
            self.profiling_start_time_ns = self._recorder.start_ns
            self._kernels = providers.Tally()
        except BaseException:
            self._give_up()
            raise

    def _stop(self) -> None:
        if self.enabled and self._recorder is not None:
            try:
                began = perf_counter_ns()
                if self._saver is not None:
                    self._saver.stop()
                self._recorder.stop()
                if self._kernels is not None:
                    self._kernels.stop()
                if self._devices is not None:
                    self._devices.stop()
                self._save_rest()
                if not self.use_cpu:
                    self._recorder.end_ns = perf_counter_ns()
                self._leave()
                self._stats.profiler_disable_call_duration_us = microseconds_since(began)
                self.profiling_end_time_ns = self._recorder.end_ns
                self._stats.profiling_window_duration_sec = (self._recorder.end_ns - self._recorder.start_ns) / 1e9
            except BaseException:
                self._give_up()
                raise

    def _save_rest(self) -> None:
        """Write what is not in the file yet, and the file's end."""
        saver, self._saver = self._saver, None
        if saver is not None and self._recorder is not None:
            saver.finish(self._with_stored(self._make_trace(self._recorder)))
            self._recorder.parts = {}

    def _leave(self) -> None:
        if self._guard is not None:
            self._guard.detach()
            self._guard = None
        RUNNING.pop(id(self), None)
        UNDER_WAY.discard(self)
        self.entered = False

    def _give_up(self) -> None:
        """Turn off after an error or Ctrl-C, and keep what can be kept of the recording."""
        if not self.enabled:
            return
        try:
            if self._recorder is not None:
                self._recorder.stop()
        finally:
            if self._recorder is not None:
                self._recorder.abandon()
            if self._devices is not None:
                self._devices.stop()
            if self._saver is not None:
                self._saver.finish(None)
                self._saver = None
            self._leave()

    __exit__ = Leaving(_stop, _give_up, lambda one: one.enabled and one.entered)

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Pause or resume collection of some activities."""
        if not self.enabled or self._recorder is None:
            return
        chosen = list(activities)
        for activity in chosen:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"activities must be ProfilerActivity values, got {activity!r}")
        sources: list[Any] = [self._recorder] if ProfilerActivity.CPU in chosen else []
        if self._devices is not None and ProfilerActivity.PrivateUse1 in chosen:
            sources.append(self._devices)
        try:
            for source in sources:
                if enable:
                    source.start()
                else:
                    source.stop()
        except BaseException:
            self._give_up()
            raise

    def step(self) -> None:
        """Count a step: events from now on belong to the next one."""
        if self._recorder is not None:
            self._recorder.step()

    def default_trace_id(self) -> str:
        """A fresh id."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """An id for the next trace: the callback's, or a fresh one."""
        if self.custom_trace_id_callback is None:
            return self.default_trace_id()
        made = self.custom_trace_id_callback()
        if not isinstance(made, str):
            raise TypeError(f"custom_trace_id_callback must return a string, got {type(made).__name__}")
        return made

    # -- results ---------------------------------------------------------------------------------------------------

    def _check_events_wanted(self) -> None:
        if self.experimental_config.trace_only:
            raise RuntimeError("events() is not available when trace_only=True in ExperimentalConfig. "
                               "Use export_chrome_trace() instead.")

    @property
    def trace(self) -> Trace:
        """The recording as columns."""
        if self._recorder is None:
            raise RuntimeError("Profiler didn't finish running")
        if self._recorder.active:
            raise RuntimeError("Profiler didn't finish running")
        if self._trace is None:
            began = perf_counter_ns()
            made = self._make_trace(self._recorder) if self.save_to is None else arrow.read(self.save_to)[0]
            self._trace = replace(made, first_id=reserve(len(made)))
            self._stats.parse_kineto_call_duration_us = microseconds_since(began)
        return self._trace

    def _flags(self) -> dict[str, bool]:
        return {name: True for name in FLAGS if getattr(self, name)}

    def _make_trace(self, recorder: Recorder) -> Trace:
        own = assemble(recorder, with_flops=self.with_flops,
                       devices=self._devices, whole=self.save_to is None,
                       metadata={"trace_id": self.trace_id, **self._flags(),
                                 **({} if self._devices is None else self._devices.metadata())})
        if recorder.steps_ns and not (own.events["kind"] == Kind.STEP).any():
            # A schedule's steps are events; steps by step() alone are known only here.
            starts = [time - own.start_ns for time in recorder.steps_ns]
            own.metadata["mindtorch_v2"] = {STEP_STARTS: starts}
        if self._kernels is not None and self._kernels.made:
            own.metadata["kernel_providers"] = self._kernels.made
        if not self._switches.forward_backward:
            own.metadata.setdefault("mindtorch_v2", {})[chrome.FORWARD_BACKWARD] = False
        if not self._switches.concrete_inputs:
            own = replace(own, inputs=[without_lists(given) for given in own.inputs])
        if self.experimental_config.adjust_profiler_step:
            own = with_steps_in_calls(own)
        overhead = overhead_of(recorder, own) if self.save_to is None else None
        if overhead is not None:
            own.metadata.update(profiler_overhead_us=round(overhead.cost_us, 3),
                                profiler_overhead_events=overhead.events)
            if NATIVE is None:
                own.metadata["profiler_recorder"] = "python"
        return with_children(own, recorder, with_flops=self.with_flops)

    @property
    def kineto_activities(self) -> set[ProfilerActivity]:
        """What is recorded: the CPU, if requested, and a device that exists."""
        device = set() if self.use_device is None else {ProfilerActivity.PrivateUse1}
        return device | ({ProfilerActivity.CPU} if self.use_cpu else set())

    @property
    def kineto_results(self) -> ProfilerResult | None:
        """The recording in the form of PyTorch's internals; None before it is finished."""
        if not self.enabled or self._recorder is None or self._recorder.active:
            return None
        if self._result is None:
            self._result = ProfilerResult(self.trace)
        return self._result

    @property
    def function_events(self) -> EventList:
        """All events, in order of their start."""
        self._check_events_wanted()
        if self.post_processing_timeout_s is not None:
            if self._partial is None:
                self._partial = events_within(self.post_processing_timeout_s, lambda: self.recording.events())
            return self._partial
        recording = self.recording
        began = perf_counter_ns()
        events = recording.events()
        if not self._stats.number_of_events:
            self._stats.function_events_build_tree_call_duration_us = microseconds_since(began)
            self._stats.number_of_events = len(events)
        return events

    @property
    def recording(self) -> Recording:
        """The results of the recording."""
        if self._recording is None:
            self._recording = Recording(self.trace, use_device=self.use_device or "", values=VALUES,
                                        with_metadata=self.experimental_config.expose_kineto_event_metadata)
        return self._recording

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False, *, group_by_module: bool = False) -> EventList:
        """Events grouped by name and, if asked, by input shapes, innermost stack entries, overload or module.

        `group_by_module` is not in PyTorch: rows get an attribute `module`. It needs `with_modules=True`.
        """
        self._check_events_wanted()
        if group_by_module and not self.with_modules:
            raise ValueError("group_by_module=True requires with_modules=True")
        if self.post_processing_timeout_s is not None and not group_by_module:
            return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)
        return self.recording.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name,
                                           group_by_module=group_by_module)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:
        """All events as a table."""
        return self.function_events.table(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
            header=header, top_level_events_only=top_level_events_only)

    def export_chrome_trace(self, path: Any) -> None:
        """Write the trace in Chrome's JSON format; gzip by suffix."""
        chosen = categories(self._activities(), self.activity_filters)
        trace = self.trace if chosen is None else of_categories(self.trace, chosen)
        chrome.write(trace, path, metadata=self.metadata,
                     with_overloads=self.experimental_config.capture_overload_names)

    def _activities(self) -> set[ProfilerActivity]:
        device = {one for one in ProfilerActivity if self.use_device and device_of({one}) == self.use_device}
        return device | ({ProfilerActivity.CPU} if self.use_cpu else set())

    def save(self, path: Any) -> None:
        """Write everything that was recorded to a trace file, for `mtprof.load`."""
        arrow.save(self._with_stored(self.trace), path)

    def _with_stored(self, trace: Trace) -> Trace:
        """The trace with the metadata that the program stored (`add_metadata`)."""
        stored = {key: json.loads(value) for key, value in self.metadata.items()}
        return replace(trace, metadata={**trace.metadata, **stored})

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def total_average(self) -> Any:
        """One row for everything."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Time on CPU, the sum of all self times, in microseconds."""
        return self.function_events.self_cpu_time_total

    def __repr__(self) -> str:
        if not self.enabled or self._recorder is None or self._recorder.active:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if not self.enabled or self._recorder is None or self._recorder.active:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)


def _dropped(identity: int, recorder: Recorder, devices: DeviceWatch | None) -> None:
    """The profiler of a recording was dropped."""
    RUNNING.pop(identity, None)
    if not recorder.active:
        return
    drop(recorder)
    if devices is not None:
        devices.stop()
    if not sys.is_finalizing():
        warnings.warn("a profiler was dropped while it recorded; its recording was stopped and is lost. "
                      "Call stop(), or use it in a `with` statement", RuntimeWarning, stacklevel=2)


def _end_with_the_interpreter() -> None:
    """Runs after the program's own exit functions: finalizers that run later find no modules to record with."""
    for one in list(UNDER_WAY):
        one._give_up()


atexit.register(_end_with_the_interpreter)
