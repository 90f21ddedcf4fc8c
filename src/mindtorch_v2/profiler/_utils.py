"""`torch.profiler._utils`: walks event trees, and estimates where the host keeps a device waiting."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mtprof.devices import DeviceType

__all__ = [
    "BasicEvaluation",
    "EventKey",
    "EventMetrics",
    "Interval",
    "argmax",
    "index_of_first_match",
    "source_code_location",
    "traverse_bfs",
    "traverse_dfs",
]

NO_LOCATION = "No source code location found"
# Names of calls that launch kernels, and parts of names that are not device work.
_LAUNCHES = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "aclrtLaunchKernel")
_NO_KERNELS = ("mem", "cpy", "alloc", "free")
_LONG_QUEUE = 4  # waiting kernels
_SHARE_OF_OWN_TIME = 0.6  # the weight of an event's self time, compared with the device's idle time
_LOCATION = re.compile(r"\.py\(.*\)")


# -- trees -------------------------------------------------------------------------------------------------------------


def _traverse(tree: Iterable[Any], next_fn: Callable[[deque[Any]], Any],
              children_fn: Callable[[Any], Iterable[Any]] = lambda node: node.children,
              reverse: bool = False) -> Iterator[Any]:
    """All nodes of some trees; `next_fn` takes the next one from those that are waiting."""

    def ordered(nodes: Iterable[Any]) -> Iterable[Any]:
        return reversed(list(nodes)) if reverse else nodes

    waiting = deque(ordered(tree))
    while waiting:
        node = next_fn(waiting)
        yield node
        waiting.extend(ordered(children_fn(node)))


# To take the last one first, the others are added in reverse.
traverse_dfs = partial(_traverse, next_fn=lambda waiting: waiting.pop(), reverse=True)
traverse_bfs = partial(_traverse, next_fn=lambda waiting: waiting.popleft(), reverse=False)


def index_of_first_match(seq: Sequence[Any], predicate: Callable[[Any], bool], start: int = 0,
                         end: int | None = None) -> int | None:
    """The index of the first fitting item from `start` to before `end`, or None."""
    for index in range(start, len(seq) if end is None else min(end, len(seq))):
        if predicate(seq[index]):
            return index
    return None


def argmax(seq: Sequence[Any], key: Callable[[Any], Any] = lambda item: item, start: int = 0,
           end: int | None = None) -> int | None:
    """The index of the first largest item from `start` to before `end`, or None if there is none."""
    indices = range(start, len(seq) if end is None else min(end, len(seq)))
    return max(indices, key=lambda index: key(seq[index])) if len(indices) else None


def source_code_location(event: Any) -> str:
    """The name of the nearest Python call at or above an event."""
    while event is not None:
        if _LOCATION.search(event.name):
            return event.name
        event = event.parent
    return NO_LOCATION


# -- evaluation --------------------------------------------------------------------------------------------------------


@dataclass
class EventMetrics:
    """What is known about an event; times in nanoseconds."""

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0  # of the device, while the event ran
    queue_depth: int = 0  # kernels that were launched but had not started

    @property
    def fraction_idle_time(self) -> float:
        """The share of the event during which the device was idle."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


@dataclass
class Interval:
    """A stretch of time and how many kernels were waiting in it."""

    start: int
    end: int
    queue_depth: int = 0


class EventKey:
    """An event as a dictionary key."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventKey) and self.event.id == other.event.id

    def __repr__(self) -> str:
        return f"{self.event.name}"

    def intervals_overlap(self, intervals: Iterable[Interval]) -> int:
        """How long the event ran inside any of the intervals; where these overlap, the time counts once."""
        total, covered = 0, self.event.start_time_ns
        for interval in sorted(intervals, key=lambda interval: interval.start):
            begin = max(covered, interval.start)
            end = min(self.event.end_time_ns, interval.end)
            if begin < end:
                total += end - begin
                covered = end
        return total


class BasicEvaluation:
    """Self times of all events, and for CUDA programs the number of waiting kernels and the device's idle times.

    `prof` is a finished `torch.autograd.profiler.profile`, or any object with a `kineto_results` that has `events()`
    and `experimental_event_tree()`.
    """

    def __init__(self, prof: Any) -> None:
        self.profile = prof
        self.metrics: dict[EventKey, EventMetrics] = {}
        self.compute_self_time()
        self.event_keys = sorted(self.metrics, key=lambda key: key.event.start_time_ns)
        self.events = [key.event for key in self.event_keys]
        self.cuda_events: list[Any] = []
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    def compute_self_time(self) -> None:
        """Fill `metrics` with durations, and durations without children."""
        if self.profile.kineto_results is None:
            raise AssertionError("kineto_results must be initialized before computing self time")
        # The latest first: PyTorch's order, in which equal values are ranked.
        for event in _traverse(self.profile.kineto_results.experimental_event_tree(), lambda waiting: waiting.pop()):
            key = EventKey(event)
            if key in self.metrics:
                raise AssertionError(f"Duplicate id: {event.id}, {event.name}")
            own = event.duration_time_ns - sum(child.duration_time_ns for child in event.children)
            self.metrics[key] = EventMetrics(event.duration_time_ns, own)

    def compute_queue_depth(self) -> list[Interval]:
        """The number of waiting kernels at each launch and each kernel; sets the depth of every event at its start."""
        if self.profile.kineto_results is None:
            raise AssertionError("kineto_results must be initialized before computing queue depth")
        everything = self.profile.kineto_results.events()
        launches = sorted(filter(_is_launch, everything), key=lambda event: event.start_ns())
        kernels = sorted(filter(_is_kernel, everything), key=lambda event: event.start_ns())
        self.cuda_events = sorted(launches + kernels, key=lambda event: event.start_ns())
        if not self.cuda_events:
            return []
        launched = np.array([event.start_ns() for event in launches], np.int64)
        started = np.array([event.start_ns() for event in kernels], np.int64)

        def depth_at(time_ns: int) -> int:
            return max(0, int(np.searchsorted(launched, time_ns, "right") - np.searchsorted(started, time_ns, "right")))

        result = [Interval(event.start_ns(), event.start_ns() + event.duration_ns(), depth_at(event.start_ns()))
                  for event in self.cuda_events]
        for key, metrics in self.metrics.items():
            metrics.queue_depth = depth_at(key.event.start_time_ns)
        return result

    def compute_idle_time(self) -> None:
        """Set the device's idle time during each event.

        A device is idle before its first work and after its last, and from the end of a kernel after which none was
        waiting to the next launch.
        """
        depths = self.queue_depth_list
        idle: list[Interval] = []
        if depths and self.events:
            idle += [Interval(self.events[0].start_time_ns, depths[0].start),
                     Interval(depths[-1].end, self.events[-1].end_time_ns)]
        since: int | None = None
        for interval in depths:
            if interval.queue_depth == 0 and since is None:
                since = interval.end
            elif interval.queue_depth > 0 and since is not None:
                idle.append(Interval(since, interval.start))
                since = None
        for key, metrics in self.metrics.items():
            metrics.idle_time_ns = key.intervals_overlap(idle)

    def draining(self) -> list[Interval]:
        """The times after a long queue of kernels in which it became empty, up to the last time before it is long
        again.

        What ran then launched too little.
        """
        found = []
        peak: Interval | None = None  # since the queue was last empty
        long_peak: Interval | None = None
        last_empty: Interval | None = None
        for interval in self.queue_depth_list:
            if interval.queue_depth > 0:
                if peak is None or interval.queue_depth >= peak.queue_depth:
                    peak = interval
                continue
            if peak is not None and peak.queue_depth >= _LONG_QUEUE:
                if long_peak is not None and last_empty is not None:
                    found.append(Interval(long_peak.start, last_empty.start))
                long_peak = peak
            peak, last_empty = None, interval
        if long_peak is not None and last_empty is not None:
            found.append(Interval(long_peak.start, last_empty.start))
        return found

    def rank_events(self, length: int) -> list[EventKey]:
        """The events that most likely kept the device waiting, the worst first; empty without device work.

        Among those that ran while a queue became empty, it takes the ones with much idle time and much self time.
        """
        times = self.draining()
        keys = [key for key in self.metrics if key.intervals_overlap(times)]
        if not keys:
            return []
        own = np.array([self.metrics[key].self_time_ns for key in keys], float)
        idle = np.array([self.metrics[key].fraction_idle_time for key in keys], float)
        score = _standard(idle) + _SHARE_OF_OWN_TIME * _standard(own)
        return [keys[place] for place in np.argsort(-score, kind="stable")[:length].tolist()]

    def get_optimizable_events(self, length: int = 1, print_enable: bool = True) -> list[EventKey]:
        """Like `rank_events`, and prints them with their places in the program."""
        found = self.rank_events(length)
        if print_enable:
            print(self._described(found))
        return found

    def _described(self, keys: Sequence[EventKey]) -> str:
        if not keys:
            return "No events to optimize\n"
        parts = ["Optimizable events:\n"]
        for key in keys:
            metrics = self.metrics[key]
            line = "-" * 80
            parts.append(f"{line}\nEvent:                {key}\n"
                         f"Source code location: {source_code_location(key.event)}\n"
                         f"Percentage idle time: {metrics.fraction_idle_time * 100:.2f}%\n{line}")
        return "\n".join(parts)


def _name(event: Any) -> str:
    """An event's name, which is a function in PyTorch, or a text."""
    return str(event.name() if callable(event.name) else event.name)


def _is_launch(event: Any) -> bool:
    return _name(event).startswith(_LAUNCHES)


def _is_kernel(event: Any) -> bool:
    on_device = event.device_type() in (DeviceType.CUDA, DeviceType.PrivateUse1)
    return on_device and not any(word in _name(event).lower() for word in _NO_KERNELS)


def _standard(values: np.ndarray) -> np.ndarray:
    """Values as distances from their mean, in standard deviations; zeros if all are equal."""
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return (values - values.mean()) / spread if spread else np.zeros_like(values)
