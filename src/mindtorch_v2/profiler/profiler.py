"""The profiler's public classes: `profile` and its life cycle. Recording, traces and views are in other modules."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from mtprof.export.memory_timeline import MemoryProfileTimeline
from mtprof.own_metadata import check_metadata
from mtprof.trace import Trace
from mtprof.views.event_list import EventList
from mtprof.views.memory_profile import MemoryProfile
from mtprof.views.module_tree import ModuleTree, module_tree
from mtprof.views.step_summary import StepSummary, step_summary

from .._device import device as torch_device
from .._warn import warn_once
from . import saving
from .activity import (
    ProfilerActivity,
    _ExperimentalConfig,
    consistent,
    device_of,
    kineto_available,
    split_activities,
    supported_activities,
)
from .errors import ProfilerStateError
from .execution_trace import ExecutionTraceObserver, _ITraceObserver
from .leaving import Leaving
from .op_tree import MemoryProfileOfResult
from .record_function import step_scope
from .recorder.collectives import rank_metadata
from .schedule import ProfilerAction, schedule
from .schedule import always as _default_schedule_fn  # lightning uses this name
from .session import profile as Session
from .sources import processes
from .stats import _ProfilerStats
from .step_tracker import KinetoStepTracker, counts_for_daemon
from .transitions import Transitions, transitions

__all__ = ["ExecutionTraceObserver", "KinetoStepTracker", "ProfilerAction", "kineto_available", "profile", "schedule",
           "supported_activities", "tensorboard_trace_handler"]

PROFILER_STEP_NAME = "ProfilerStep"
DEEPEST_METADATA = 100  # the limit of files and their readers


class _KinetoProfile:
    """A recording that the program controls: `start`, `stop`, then results."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: _ITraceObserver | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        max_events: int | None = None,
        save_to: str | os.PathLike[str] | None = None,
    ) -> None:
        self.activities, self.activity_filters = split_activities(activities)
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = consistent(experimental_config, with_stack)
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.max_events = max_events
        self.save_to = save_to
        if save_to is not None:
            saving.check(use_device=device_of(self.activities), execution_trace_observer=execution_trace_observer)
        self._saved = 0  # recordings that went to files
        self.profiler: Session | None = None
        self.has_cudagraphs = False  # there are no CUDA graphs here; PyTorch's programs ask for this
        self.mem_tl: Any = None
        self.use_device = device_of(self.activities)
        self.preset_metadata: dict[str, str] = {}
        self._earlier: list[EventList] = []

    # -- life cycle ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin recording."""
        try:
            self.prepare_trace()
            self.start_trace()
        except BaseException:
            self._give_up()
            raise

    def stop(self) -> None:
        """End recording."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Prepare; nothing is recorded yet."""
        if self.profiler is None or not self.acc_events:
            self._earlier = []
        if self.profiler is not None:
            if self.acc_events:
                self._keep_events()
            else:
                warn_once("Warning: Profiler clears events at the end of each cycle. Those of all cycles are kept with "
                          "acc_events=True.")
                if self.profiler.entered:
                    self.profiler.__exit__(None, None, None)
        self.profiler = Session(
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device=self.use_device,
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
            use_kineto=True,
            experimental_config=self.experimental_config,
            acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
            post_processing_timeout_s=self.post_processing_timeout_s,
            activity_filters=self.activity_filters,
            max_events=self.max_events,
            save_to=None if self.save_to is None else saving.numbered(self.save_to, self._saved + 1),
        )
        self.profiler._prepare_trace()

    def _keep_events(self) -> None:
        if self.profiler is not None and not self.profiler.entered and not self.experimental_config.trace_only:
            self._earlier.append(self.profiler.function_events)

    def start_trace(self) -> None:
        """Start what `prepare_trace` prepared."""
        session = self._session("starting trace")
        try:
            if self.execution_trace_observer is not None:
                # First: if it cannot start, nothing has been turned on yet.
                self.execution_trace_observer.start()
            session._start_trace()
            self._saved += self.save_to is not None
            for key, value in self.preset_metadata.items():
                self.add_metadata_json(key, value)
            self._note_ranks()
        except BaseException:
            self._give_up()
            raise

    def stop_trace(self) -> None:
        """Stop; from now on results are available."""
        session = self._session("stopping trace")
        try:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()
            self._note_ranks()  # again: groups may have been made or ended since the start
            session.__exit__(None, None, None)
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Turn off after an error or Ctrl-C, and keep what can be kept of the recording."""
        try:
            if self.profiler is not None and self.profiler.entered:
                self.profiler._give_up()
        finally:
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()

    def _session(self, purpose: str) -> Session:
        if self.profiler is None:
            raise ProfilerStateError(f"Profiler must be initialized before {purpose}: {self._why_nothing()}")
        return self.profiler

    def _why_nothing(self) -> str:
        return "nothing was recorded; use it as a context manager or call start() first"

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Turn the collection of activities off and on again while recording.

        >>> import mindtorch_v2 as torch
        >>> from mindtorch_v2.profiler import ProfilerActivity
        >>> with torch.profiler.profile() as prof:
        ...     prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        ...     y = torch.ones(2) + 1
        ...     prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        ...     z = torch.ones(2) * 2
        >>> "aten::add" in {e.name for e in prof.events()}
        False
        """
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # -- metadata --------------------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Store a string in the trace file."""
        if not isinstance(value, str):
            raise AttributeError(f"'{type(value).__name__}' object has no attribute 'replace'; metadata '{key}' must "
                                 "be a string, use add_metadata_json for other values")
        self._store_metadata(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Store a JSON value, given as text, in the trace file."""
        self._store_metadata(key, value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Like `add_metadata_json`, but before the profiler has started."""
        if not isinstance(key, str):
            raise TypeError(f"the key of metadata must be a string, got {type(key).__name__}")
        self.preset_metadata[key] = value

    def _store_metadata(self, key: str, value: str) -> None:
        if not isinstance(key, str):
            raise TypeError(f"the key of metadata must be a string, got {type(key).__name__}")
        try:
            inside = [json.loads(value)]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"metadata '{key}' is not JSON: {value!r} ({error})") from None
        check_metadata({key: inside[0]})
        for _ in range(DEEPEST_METADATA):
            inside = [part for one in inside if isinstance(one, (list, dict))
                      for part in (one.values() if isinstance(one, dict) else one)]
        if inside:
            raise ValueError(f"metadata '{key}' is nested deeper than {DEEPEST_METADATA} levels")
        if self.profiler is None:
            self.preset_metadata[key] = value
        else:
            self.profiler.metadata[key] = value

    def _get_distributed_info(self) -> dict[str, Any] | None:
        """The ranks and groups of this process, as PyTorch writes them; None without groups."""
        return rank_metadata().get("distributedInfo")

    def _note_ranks(self) -> None:
        """Store this process's ranks and groups, and how its clock differs from that of rank 0."""
        for key, value in rank_metadata().items():
            self.add_metadata_json(key, json.dumps(value))

    def _stats(self) -> _ProfilerStats | None:
        """The time of the profiler's own work; None before there was any."""
        return None if self.profiler is None else self.profiler._stats

    def get_trace_id(self) -> str | None:
        """The id of the current trace, None before there is one."""
        return None if self.profiler is None else self.profiler.trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Set a callback that names the traces that start from now on."""
        self.custom_trace_id_callback = callback

    # -- results ---------------------------------------------------------------------------------------------------

    @property
    def trace(self) -> Trace:
        """The recording as columns."""
        return self._session("accessing the trace").trace

    def events(self) -> EventList:
        """All events of the current cycle, or of all cycles with `acc_events=True`."""
        found = self._session("accessing events").function_events
        if self._earlier:
            everything = EventList(use_device=self.use_device, profile_memory=self.profile_memory,
                                   with_flops=self.with_flops)
            for earlier in self._earlier:
                everything.extend(earlier)
            everything.extend(found)
            everything._tree_built = True
            return everything
        return found

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False, *, group_by_module: bool = False) -> EventList:
        """Events grouped by name and, if asked, by input shapes, stack, overload or module (`with_modules=True`)."""
        session = self._session("getting key averages")
        if self._earlier:
            if group_by_module:
                raise NotImplementedError("key_averages: no group_by_module with acc_events=True, because the events "
                                          "come from several traces")
            return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)
        return session.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name,
                                    group_by_module=group_by_module)

    def module_tree(self) -> ModuleTree:
        """Time, memory, FLOPs and parameters by the modules of a model; needs `with_modules=True`."""
        if not self.with_modules:
            raise ValueError("module_tree: with_modules=True required, the recording has no modules")
        return module_tree(self._session("getting the module tree").trace)

    def step_summary(self) -> StepSummary:
        """For each step the time for data, forward, backward and optimizer, and the rest; not in PyTorch.

        >>> import mindtorch_v2 as torch
        >>> with torch.profiler.profile() as prof:
        ...     for _ in range(2):
        ...         y = torch.ones(3) + 1
        ...         prof.step()
        >>> len(prof.step_summary()), sum(prof.step_summary()[0].fractions.values()) > 0.999
        (2, True)
        """
        return step_summary(self._session("summarising steps").trace)

    def _repr_html_(self) -> str | None:
        """In notebooks: the recording; before there is one, None for the usual repr."""
        finished = self.profiler is not None and not self.profiler.entered
        return self.profiler.recording._repr_html_() if finished and self.profiler is not None else None

    def export_chrome_trace(self, path: Any, use_python_export: bool = False) -> None:
        """Write the trace in Chrome's JSON format; a name that ends in `.gz` is compressed."""
        self._session("exporting chrome trace").export_chrome_trace(path)

    def save(self, path: Any) -> None:
        """Write everything that was recorded to a trace file (`.mtp`); `load` reads it back unchanged.

        The file is an Arrow file, which polars, DuckDB and pandas can also read; see docs/schema.md.
        """
        self._session("saving").save(path)

    def export_stacks(self, path: Any, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph; needs `with_stack=True`."""
        self._session("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: Any, device: str | None = None) -> None:
        """Write memory by category over time; needs record_shapes, profile_memory and with_stack.

        `.html` is a page to look at, `.json` and `.json.gz` have `[times, bytes per category]`, and `.raw.json.gz` has
        `[time, action, bytes, category]` for each change.
        """
        default = f"{self.use_device}:0" if self.use_device else "cpu"
        where = str(torch_device(default if device is None else device))
        self.mem_tl = MemoryProfileTimeline(self._memory_profile())
        self.mem_tl.write(path, where)

    def _memory_profile(self) -> MemoryProfile:
        missing = [f"{flag}=True" for flag in ("record_shapes", "profile_memory", "with_stack")
                   if not getattr(self, flag)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        session = self._session("accessing the memory profile")
        result, trace = session.kineto_results, session.trace
        assert result is not None  # the session is finished, or it would have no trace
        known = self.mem_tl.profile if self.mem_tl is not None else None
        if known is not None and known.trace is trace:
            return known
        return MemoryProfileOfResult(result, trace)


class profile(_KinetoProfile):
    """Record what a program does, step by step if there is a schedule.

    >>> import mindtorch_v2 as torch
    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(3) + 1
    >>> [row.key for row in prof.key_averages() if row.key == "aten::add"]
    ['aten::add']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: _ITraceObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        max_events: int | None = None,
        save_to: str | os.PathLike[str] | None = None,
    ) -> None:
        chosen = list(supported_activities() if activities is None else activities)
        if not any(isinstance(item, ProfilerActivity) or (isinstance(item, dict) and item) for item in chosen):
            raise AssertionError("No valid profiler activities found")
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            chosen = [item for item in chosen if item is not ProfilerActivity.CUDA]
            chosen += [ProfilerActivity.CUDA] if use_cuda else []
            if not chosen:
                raise AssertionError("No valid profiler activities found")
        super().__init__(
            activities=chosen, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, with_modules=with_modules, experimental_config=experimental_config,
            execution_trace_observer=(execution_trace_observer
                                      or ExecutionTraceObserver.build_execution_trace_obs_from_env()),
            acc_events=acc_events, custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s, max_events=max_events, save_to=save_to,
        )
        self.schedule = schedule if schedule is not None else _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: step_scope | None = None
        self._started = self._was_started = False
        self._given_up: ProfilerAction | None = None  # the action that an error or Ctrl-C ended
        KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)

    def __enter__(self) -> profile:
        self.start()
        return self

    def _leave(self) -> None:
        try:
            self.stop()
        finally:
            KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begin with the schedule's action for step 0."""
        try:
            self._started = self._was_started = True
            if self._given_up is not None:
                self.current_action, self._given_up = self._given_up, None
            if self.record_steps:
                # Workers that start before the first recorded step can take part in it.
                processes.expect(self)
            self._transit_action(ProfilerAction.NONE, self.current_action)
            if self.record_steps:
                self._open_step()
        except BaseException:
            self._give_up()
            raise

    def stop(self) -> None:
        """End; a running recording is finished and passed to `on_trace_ready`."""
        try:
            self._close_step()
            self._started = False
            self._transit_action(self.current_action, None)
            processes.expect_no_more(self)
        except BaseException:
            self._give_up()
            raise

    def step(self) -> None:
        """State that the next step begins."""
        try:
            self._close_step()
            before = self.current_action
            self.step_num += 1
            self.current_action, self._given_up = self.schedule(self.step_num), None
            if self._started:
                self._transit_action(before, self.current_action)
            if self.profiler is not None:
                self.profiler.step()
            if counts_for_daemon():
                KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
            if self.record_steps:
                self._open_step()
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        self._started = False
        if self._given_up is None:
            # There is nothing left to stop; the next start continues from here.
            self._given_up, self.current_action = self.current_action, ProfilerAction.NONE
        self.step_rec_fn = None  # nothing to close either: an interrupt may have come before it was open
        try:
            processes.expect_no_more(self)
        finally:
            processes.drop(0)  # this also releases locks that an interrupt may have left taken
            super()._give_up()

    __exit__ = Leaving(_leave, _give_up, lambda prof: prof._started)

    def _why_nothing(self) -> str:
        if self.step_num == 0 and not self._was_started:
            return super()._why_nothing()
        if self.step_num == 0:
            return ("a schedule was given but step() was never called, so it stayed at its first action, "
                    f"{self.current_action.name}; call step() at the end of each step")
        return (f"the schedule did not reach a recording step in {self.step_num} calls of step() "
                f"(the action is {self.current_action.name})")

    def _open_step(self) -> None:
        scope = step_scope(f"{PROFILER_STEP_NAME}#{self.step_num}")
        scope.__enter__()
        self.step_rec_fn = scope  # set only now: if an interrupt prevents its beginning, it is not ended

    def _close_step(self) -> None:
        scope, self.step_rec_fn = self.step_rec_fn, None
        if scope is not None:
            scope.__exit__(None, None, None)

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    @property
    def action_map(self) -> Transitions:
        """The actions between two steps. Made new each time: if kept, it would keep the profiler alive."""
        return transitions(self)

    def _transit_action(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Do what lies between two steps' actions; `after` None means the end."""
        for act in self.action_map.get((before, after), ()):
            act()


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[Any], None]:
    """An `on_trace_ready` that writes `<worker>.<time>.pt.trace.json` files to a directory."""
    if not worker_name:
        worker_name = f"{socket.gethostname()}_{os.getpid()}"

    def handle(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        name = f"{worker_name}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle
