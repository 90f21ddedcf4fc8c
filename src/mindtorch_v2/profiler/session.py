"""One recording from start to results: `torch.autograd.profiler.profile`, on which `torch.profiler.profile` stands."""

from __future__ import annotations

import uuid
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

from .._dispatch.native import NATIVE
from .activity import ProfilerActivity, _ExperimentalConfig, available, consistent
from .event_ids import reserve
from .export import chrome
from .profiler_state import RUNNING, ActiveProfilerType
from .recorder import Recorder, RecorderOptions, assemble, with_children
from .recorder.overhead import overhead_of
from .result import ProfilerResult
from .stats import _ProfilerStats, microseconds_since
from .switches import SWITCHES, without_lists
from .trace import Kind, Trace
from .trace.step_starts import with_steps_in_calls
from .views.averages import averages_of
from .views.event_list import EventList
from .views.step_summary import STEP_STARTS
from .views.trace_events import events_of

UNDER_WAY: weakref.WeakSet[profile] = weakref.WeakSet()
COMING_METADATA: dict[str, str] = {}  # for the next recording that starts


class profile:
    """Record what runs inside.

    >>> import mindtorch_v2 as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.relu(torch.ones(2))
    >>> [row.key for row in prof.key_averages()]
    ['aten::ones', 'aten::empty', 'aten::fill_', 'aten::relu', 'aten::clamp_min']
    """

    kind = ActiveProfilerType.KINETO  # what `torch._C._autograd._profiler_type` says while it records

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
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn("The attribute `use_cuda` is deprecated, give use_device='cuda' in its place", FutureWarning,
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
        self.experimental_config = consistent(experimental_config or _ExperimentalConfig(), with_stack)
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.activity_filters = activity_filters or {}
        if max_events is not None and max_events <= 0:
            raise ValueError(f"max_events must be positive, got {max_events}")
        self.max_events = max_events
        self.entered = False
        self._was_entered = False  # as a context, for which there is only one time
        self.trace_id = ""
        self.metadata: dict[str, str] = {}
        self.profiling_start_time_ns = 0
        self.profiling_end_time_ns = 0
        self._recorder: Recorder | None = None
        self._trace: Trace | None = None
        self._events: EventList | None = None
        self._result: ProfilerResult | None = None
        self._switches = SWITCHES
        self._averages: dict[tuple[Any, ...], EventList] = {}
        self._stats = _ProfilerStats()

    # -- life cycle ------------------------------------------------------------------------------------------------

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered or self._was_entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._was_entered = True
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        for names in self.activity_filters.values():
            # Kinds within an activity that can be chosen; as in PyTorch, the CPU has none.
            for name in sorted(names):
                raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
        self.entered = True
        self._stats = _ProfilerStats()
        self.trace_id = self.create_trace_id()
        self._switches = replace(SWITCHES)
        began = perf_counter_ns()
        self._recorder = Recorder(RecorderOptions(
            shapes=self.record_shapes, memory=self.profile_memory, stacks=self.with_stack, modules=self.with_modules,
            max_events=self.max_events, collections=self.experimental_config.record_python_gc_info))
        self._stats.profiler_prepare_call_duration_us = microseconds_since(began)
        self._trace = None
        self._events = None
        self._result = None
        self._averages = {}

    def _start_trace(self) -> None:
        if self._recorder is None:
            raise RuntimeError("the profiler was started before it was prepared")
        if self.use_cpu:
            began = perf_counter_ns()
            RUNNING.append(self.kind)
            self.metadata.update(COMING_METADATA)
            COMING_METADATA.clear()
            UNDER_WAY.add(self)
            self._recorder.start()
            self._stats.profiler_enable_call_duration_us = microseconds_since(began)
        self.profiling_start_time_ns = self._recorder.start_ns

    def __exit__(self, *exc: object) -> None:
        if self.enabled and self._recorder is not None:
            began = perf_counter_ns()
            self._recorder.stop()
            if self.entered and self.use_cpu and self.kind in RUNNING:
                RUNNING.remove(self.kind)
            UNDER_WAY.discard(self)
            self._stats.profiler_disable_call_duration_us = microseconds_since(began)
            self.profiling_end_time_ns = self._recorder.end_ns
            self._stats.profiling_window_duration_sec = (self._recorder.end_ns - self._recorder.start_ns) / 1e9
            self.entered = False

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Pause or resume collection of some activities."""
        if not self.enabled or self._recorder is None or ProfilerActivity.CPU not in set(activities):
            return
        if enable:
            self._recorder.start()
        else:
            self._recorder.stop()

    def step(self) -> None:
        """Count a step: events from now on belong to the next one."""
        if self._recorder is not None:
            self._recorder.step()

    def default_trace_id(self) -> str:
        """A fresh id."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """An id for the next trace: the callback's, or a fresh one."""
        return self.custom_trace_id_callback() if self.custom_trace_id_callback is not None else self.default_trace_id()

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
            made = self._make_trace(self._recorder)
            # Not all recorders note what modules hold.
            self._trace = replace(made, first_id=reserve(len(made)), held=getattr(self._recorder, "held", None))
            self._stats.parse_kineto_call_duration_us = microseconds_since(began)
        return self._trace

    def _make_trace(self, recorder: Recorder) -> Trace:
        flags = {"record_shapes": self.record_shapes, "profile_memory": self.profile_memory,
                 "with_stack": self.with_stack, "with_flops": self.with_flops, "with_modules": self.with_modules}
        own = assemble(recorder, with_flops=self.with_flops,
                       metadata={"trace_id": self.trace_id, **{k: v for k, v in flags.items() if v}})
        if recorder.steps_ns and not (own.events["kind"] == Kind.STEP).any():
            # A schedule's steps are events; those of step() alone are known to nobody else.
            starts = [time - own.start_ns for time in recorder.steps_ns]
            own.metadata["mindtorch_v2"] = {STEP_STARTS: starts}
        if not self._switches.forward_backward:
            own.metadata.setdefault("mindtorch_v2", {})[chrome.FORWARD_BACKWARD] = False
        if not self._switches.concrete_inputs:
            own = replace(own, inputs=[without_lists(given) for given in own.inputs])
        if self.experimental_config.adjust_profiler_step:
            own = with_steps_in_calls(own)
        overhead = overhead_of(recorder, own)
        if overhead is not None:
            own.metadata.update(profiler_overhead_us=round(overhead.cost_us, 3),
                                profiler_overhead_events=overhead.events)
            if NATIVE is None:
                own.metadata["profiler_recorder"] = "python"
        return with_children(own, recorder, with_flops=self.with_flops)

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
        if self._events is None:
            if self._recorder is None:
                raise RuntimeError("Profiler didn't finish running")
            trace = self.trace
            began = perf_counter_ns()
            self._events = events_of(trace, use_device=self.use_device, profile_memory=self.profile_memory,
                                     with_flops=self.with_flops,
                                     with_metadata=self.experimental_config.expose_kineto_event_metadata)
            self._stats.function_events_build_tree_call_duration_us = microseconds_since(began)
            self._stats.number_of_events = len(self._events)
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False, *, group_by_module: bool = False) -> EventList:
        """Events grouped by name and, if asked, by input shapes, innermost stack entries, overload or module.

        `group_by_module` is not in PyTorch: rows get an attribute `module`; needs `with_modules=True`.
        """
        self._check_events_wanted()
        if group_by_module and not self.with_modules:
            raise ValueError("group_by_module=True requires with_modules=True")
        key = (group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module)
        if key not in self._averages:
            self._averages[key] = averages_of(
                self.trace, group_by_input_shapes=group_by_input_shape, group_by_stack_n=group_by_stack_n,
                group_by_overload_name=group_by_overload_name, group_by_module=group_by_module,
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops)
        return self._averages[key]

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
        chrome.write(self.trace, path, metadata=self.metadata)

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
