"""Recordings of child processes, on the side of the process that profiles.

A child that takes part has a channel: a pipe on which it learns when a recording begins and ends, and a pipe on which
it sends what it recorded (`reporting.Reporter` is the other end). A child without a channel is not recorded.

Waiting for children has a time limit, `PATIENCE`. A message travels in pieces small enough for the system to write each
one as a whole. So there is always either a whole piece to read or nothing, even if the child is stopped or killed while
it writes. A child whose pipe nobody reads while it ends leaves its recordings in files instead (`Left`).
"""

from __future__ import annotations

import itertools
import pickle
import shutil
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import connection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from mtprof.tables.select import between, shifted
from mtprof.trace import Trace

from ..._dispatch.observer import HOOK
from ..locks import let_go, new_lock
from ..options import Options
from .base import Source, Stretch

clock = HOOK["clock"]

PACKAGE = str(Path(__file__).parents[2])
PATIENCE = 5.0  # seconds for all children together to send what they recorded
START_PATIENCE = 1.0  # seconds to begin recording
ALIGNMENTS = 5  # questions about a clock; the fastest answer counts
PIECE_BYTES = 4000  # with multiprocessing's header below 4096, which a pipe on Linux takes as a whole or not at all
LAST, MORE = b"L", b"M"  # the first byte of a piece

# Clocks of the whole system. If perf_counter is another one, the difference is measured.
_SYSTEM_CLOCKS = ("clock_gettime(CLOCK_MONOTONIC)", "mach_absolute_time()", "QueryPerformanceCounter()")
SHARED_CLOCK = time.get_clock_info("perf_counter").implementation in _SYSTEM_CLOCKS


@dataclass
class Arrived:
    """What arrived of one recording."""

    traces: list[Trace] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # a line per child whose events did not arrive
    told: list[Channel] = field(default_factory=list)  # children that know about it, kept until they have answered


@dataclass(frozen=True)
class Left:
    """In a message, instead of a recording: the file with the recording."""

    path: str

    def take(self) -> Any:
        """Read the file and remove it; returns the reason if it cannot be read."""
        path = Path(self.path)
        try:
            return pickle.loads(path.read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            return f"left a file that cannot be read ({error})"
        finally:
            path.unlink(missing_ok=True)


@dataclass(eq=False)
class Channel:
    """The pipes to one child."""

    label: str  # the name of its process in a trace
    requests: Any
    reports: Any
    pid: int = 0
    directory: str = ""  # where the child writes its recordings, if not to the pipe
    keys: set[int] = field(default_factory=set)  # recordings that the child knows about and has not sent yet
    closed: bool = False
    offset_ns: int | None = 0 if SHARED_CLOCK else None  # from the child's clock to ours
    time_ns: int = 0  # its clock at the last question
    started: set[int] = field(default_factory=set)  # the recordings that it has begun
    _pieces: list[bytes] = field(default_factory=list)

    def ask(self, *message: Any) -> None:
        """Send a request. A child that is gone is noticed when its answer is read."""
        try:
            self.requests.send(message)
        except OSError:
            # Its pipe has ended; what it sent before that can still be read.
            return

    def message(self) -> Any:
        """Read a piece that has arrived; returns the whole message if it was the last piece, otherwise None."""
        piece = self.reports.recv_bytes()
        self._pieces.append(piece[1:])
        if piece[:1] == MORE:
            return None
        whole, self._pieces = b"".join(self._pieces), []
        return pickle.loads(whole)

    def close(self) -> None:
        """Close the pipes."""
        self.closed = True
        self.requests.close()
        self.reports.close()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)


class Processes(Source):
    """Lets children take part in one recording. They are told before it begins, and asked for their events after it."""

    name = "processes"
    tables = ("events", "memory", "stacks")
    cost = "a message to each child at the start and at the end, and the cost of recording there"

    def __init__(self) -> None:
        super().__init__(None)
        self.key = 0

    def wanted(self, options: Options) -> bool:
        """Always: a child without a channel does not take part."""
        return True

    def start(self) -> None:
        """Get a number for the recording. With the number, the recording can be dropped, however far it got."""
        self.key = next(Children.numbers)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Tell the living children, and let them prepare."""
        begin(self.key, wishes[0])

    def mark(self) -> int:
        """When the recording began."""
        return clock()

    def take(self, mark: int, stretch: Stretch) -> Arrived:
        """What children recorded, including those that have ended."""
        arrived = end(self.key, mark, stretch.end_ns)
        self.key = 0
        return arrived

    def stop(self) -> None:
        """Release the children."""
        drop(self.key)
        self.key = 0


class WatchFunctions(NamedTuple):
    """Watches for new children while they are wanted: how to begin, end, and what to do in a forked child."""

    install: Callable[[], None]
    remove: Callable[[], None]
    forget: Callable[[], None]


class Children:
    """All channels, and the running recordings."""

    channels: ClassVar[weakref.WeakSet[Channel]] = weakref.WeakSet()
    recordings: ClassVar[dict[int, Any]] = {}  # key -> Options
    arrived: ClassVar[dict[int, Arrived]] = {}
    expecting: ClassVar[dict[int, weakref.finalize[Any, Any]]] = {}  # by id: profilers that will record later
    watches: ClassVar[list[WatchFunctions]] = []
    lock = new_lock()
    numbers = itertools.count(1)


def begin(key: int, options: Any) -> None:
    """A recording begins: tell the living children, and let them prepare."""
    with Children.lock:
        Children.recordings[key] = options
        take_what_is_there()  # a child that has ended has nothing to lose
        channels = list(Children.channels)
        Children.arrived[key] = Arrived(told=list(channels))
        _look_out()
        for channel in channels:
            channel.keys.add(key)
            channel.ask("start", key, options)
        # A child that is not ready in time will be later; what it did before that is missing.
        _exchange(channels, lambda channel: key in channel.started or key not in channel.keys, START_PATIENCE)


def drop(key: int) -> None:
    """A recording was given up: children stop, and nothing waits for their events."""
    try:
        with Children.lock:
            Children.recordings.pop(key, None)
            Children.arrived.pop(key, None)
            for channel in list(Children.channels):
                if key in channel.keys:
                    channel.keys.discard(key)
                    channel.started.discard(key)
                    channel.ask("stop", key)
            _look_out()
    finally:
        let_go(Children.lock)


def end(key: int, start_ns: int, end_ns: int) -> Arrived:
    """A recording has ended: return what children recorded between these times, including ended ones."""
    with Children.lock:
        Children.recordings.pop(key, None)
        try:
            gather([channel for channel in list(Children.channels) if key in channel.keys], {key}, PATIENCE)
        finally:
            arrived = Children.arrived.pop(key, Arrived())
            arrived.told.clear()
            _look_out()
    arrived.traces = [between(trace, start_ns, end_ns) for trace in arrived.traces]
    if arrived.lost:
        warnings.warn("the trace lacks events of child processes: " + "; ".join(arrived.lost), RuntimeWarning,
                      stacklevel=_users_level())
    return arrived


def _users_level() -> int:
    """The stack level, from the caller's, of the profiled program, for the place in a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def expect(profiler: Any) -> None:
    """A profiler will record later: children that start from now on get a channel."""
    with Children.lock:
        guard = weakref.finalize(profiler, _expect_no_more, id(profiler))
        guard.atexit = False
        Children.expecting[id(profiler)] = guard
        _look_out()


def expect_no_more(profiler: Any) -> None:
    """It will not."""
    _expect_no_more(id(profiler))


def _expect_no_more(identity: int) -> None:
    with Children.lock:
        guard = Children.expecting.pop(identity, None)
        if guard is not None:
            guard.detach()  # so that no code runs when the profiler dies: a Ctrl-C during that is lost
        _look_out()


def wanted() -> bool:
    """Whether a child that starts now should have a channel."""
    return bool(Children.recordings) or bool(Children.expecting)


def _look_out() -> None:
    for watch in Children.watches:
        (watch.install if wanted() else watch.remove)()


def under_way() -> dict[int, Any]:
    """The recordings in which a new child should take part: options by key."""
    return dict(Children.recordings)


def join(channel: Channel, keys: Sequence[int]) -> None:
    """A child has started that knows about these recordings."""
    with Children.lock:
        Children.channels.add(channel)
        for key in keys:
            if key in Children.recordings:
                channel.keys.add(key)
                channel.started.add(key)
                Children.arrived[key].told.append(channel)
            else:
                # It ended between the question and the start, and would continue in the child; nobody takes the answer.
                channel.ask("stop", key)


def leave(channels: Sequence[Channel], patience: float) -> None:
    """Children are about to end, or have ended: take what they recorded and close their pipes.

    Waiting for the lock has a time limit too: whoever ends a pool may hold locks that the other thread needs.
    """
    taken = Children.lock.acquire(timeout=2 * PATIENCE)
    try:
        if taken:
            gather([channel for channel in channels if channel.keys], None, patience)
        for channel in channels:
            Children.channels.discard(channel)
            channel.close()
    finally:
        if taken:
            Children.lock.release()


def take_what_is_there() -> None:
    """Read what children have sent, without waiting, and close the pipes of those that have ended."""
    with Children.lock:
        _exchange(list(Children.channels), lambda channel: False, 0.0)


def gather(channels: Sequence[Channel], keys: set[int] | None, patience: float) -> None:
    """Ask for recordings (None: all open ones); wait until they arrive, their child is gone, or time is up."""

    def open_keys(channel: Channel) -> set[int]:
        return set(channel.keys) if keys is None else channel.keys & keys

    for channel in channels:
        if channel.offset_ns is None:
            _align(channel)
        for key in sorted(open_keys(channel)):
            channel.ask("stop", key)
    for channel in _exchange(channels, lambda channel: not open_keys(channel), patience):
        _lose(channel, open_keys(channel), f"did not answer within {patience:g} s")


def _align(channel: Channel) -> None:
    """Measure how the child's clock differs from ours: it was read about halfway between question and answer."""
    shortest = 0
    for _ in range(ALIGNMENTS):
        channel.time_ns = 0
        asked_ns = clock()
        channel.ask("clock")
        if _exchange([channel], lambda channel: channel.time_ns != 0, START_PATIENCE) or not channel.time_ns:
            return  # it does not answer; the next question will show that
        now_ns = clock()
        if not shortest or now_ns - asked_ns < shortest:
            shortest = now_ns - asked_ns
            channel.offset_ns = (asked_ns + now_ns) // 2 - channel.time_ns


def _exchange(channels: Sequence[Channel], done: Callable[[Channel], bool], patience: float) -> list[Channel]:
    """Read messages until all are done or gone; returns those that did neither in time."""
    deadline = time.monotonic() + patience
    waiting = {channel.reports: channel for channel in channels}
    while True:
        # A channel may have been closed meanwhile: the garbage collector stops workers that nobody needs.
        waiting = {pipe: channel for pipe, channel in waiting.items() if not channel.closed and not done(channel)}
        if not waiting:
            return []
        ready = connection.wait(list(waiting), max(0.0, deadline - time.monotonic()))
        if not ready:
            return list(waiting.values())
        for pipe in ready:
            channel = waiting[pipe]
            try:
                message = channel.message()
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                # A recording that it did not begin, because it was about to end, is no loss.
                _lose(channel, channel.keys & channel.started, f"ended before it sent them ({type(error).__name__})")
                channel.keys.clear()
                Children.channels.discard(channel)
                channel.close()
                del waiting[pipe]
                continue
            if message is not None:
                _take(channel, message)


def _take(channel: Channel, message: tuple[str, int, Any]) -> None:
    what, number, content = message
    if what == "clock":
        channel.time_ns = number
        return
    if what == "started":
        channel.started.add(number)
        return
    if isinstance(content, Left):
        content = content.take()
    if number not in channel.keys:
        return  # too late: the recording was given up
    channel.keys.discard(number)
    channel.started.discard(number)
    if isinstance(content, str):
        _lose(channel, {number}, content)
    elif number in Children.arrived:
        Children.arrived[number].traces.append(_named(content, channel))


def _named(trace: Trace, channel: Channel) -> Trace:
    """The trace with the child's name, on our clock."""
    threads = [info._replace(process_name=channel.label) for info in trace.threads]
    offset_ns = channel.offset_ns
    if offset_ns is None:
        # It ended before it could be asked. The time of day, which is less exact, is the same for both.
        offset_ns = trace.epoch_ns - (time.time_ns() - clock())
    return replace(shifted(trace, offset_ns), threads=threads)


def _lose(channel: Channel, keys: set[int], reason: str) -> None:
    for key in keys:
        channel.keys.discard(key)
        channel.started.discard(key)
        if key in Children.arrived:
            Children.arrived[key].lost.append(f"{channel.label} (pid {channel.pid}) {reason}")


def forget() -> None:
    """In a forked child: the channels and recordings are its parent's."""
    Children.channels = weakref.WeakSet()
    Children.recordings = {}
    Children.arrived = {}
    Children.expecting = {}
    Children.lock = new_lock()
    for watch in Children.watches:
        watch.forget()
