"""Records calls of Python and built-in functions on every thread, for recordings with stacks.

A call is two records: `(time, code, instruction)` when a frame is entered or resumed, and `(time, code, EXIT)` when it
returns, yields or is unwound. For a built-in function that the user's code calls, its name takes the place of the code
and `BUILT_IN` that of the instruction. If a generator waits for another one while an error is thrown into that, it is
recorded before the other, at `DELEGATES` minus its instruction, and ends with the other. `python_stacks` makes events
of them.

From Python 3.12 on, `sys.monitoring` reports all threads (`monitoring`); before that, each thread has a profile
function of its own (`profile_functions`). Built-in functions that libraries or this package call are left out: an op of
this runtime calls dozens, so they would cost many times the op.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof.trace import ThreadInfo

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK, note_lines
from ..options import Options
from .base import Source, Stretch
from .call_book import CallBook, OpenCall, classify, delegating, is_shown, open_calls, users_line, waits
from .call_limit import CallBudget
from .call_sites import called_name
from .monitoring import Monitor
from .profile_functions import ProfileFunctions

if TYPE_CHECKING:
    from ..recorder.running import Running

clock = HOOK["clock"]

OUR_THREADS: set[int] = set()  # threads that work for recordings, by number; not part of the user's program
CALL_FIELDS = 3  # time, code or name, instruction

_MOST_LOOKS = 100
_TOOL_IDS = (2, 3, 4, 1, 5, 0)  # of sys.monitoring; 2 is meant for profilers


class CallList:
    """Records in a flat list, which keeps what it refers to alive."""

    def __init__(self) -> None:
        self.flat: list[Any] = []

    def __len__(self) -> int:
        return len(self.flat) // CALL_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """Times, identities of codes or names, and instructions, from a record on."""
        size = len(self)
        part = self.flat[begin * CALL_FIELDS:size * CALL_FIELDS]
        objects = part[1::CALL_FIELDS]
        return (np.array(part[0::CALL_FIELDS], np.int64), np.fromiter(map(id, objects), np.int64, len(objects)),
                np.array(part[2::CALL_FIELDS], np.int64))

    def drain(self) -> tuple[np.ndarray, ...]:
        """The fields of all records; the records are dropped."""
        taken = self.since(0)
        self.forget(len(taken[0]))
        return taken

    def forget(self, count: int) -> None:
        """Drop the first records."""
        del self.flat[:count * CALL_FIELDS]

    def objects(self) -> dict[int, Any]:
        """The objects of the records, by identity."""
        return {id(value): value for value in self.flat[1::CALL_FIELDS]}


@dataclass(eq=False)
class CallLane:
    """The calls of one thread."""

    rows: Any  # a `CallList`, or its C twin
    info: ThreadInfo
    ident: int
    base: list[OpenCall] = field(default_factory=list)  # open when the first call was recorded
    base_ns: int = 0
    retire: Callable[[], None] = lambda: None
    was_there: bool = False  # the thread was alive before, and may do nothing


Records = tuple[np.ndarray, ...]  # times, identities, instructions


@dataclass(frozen=True)
class Left:
    """What remains of a lane after the ended calls were taken out of it."""

    base: list[OpenCall]  # calls that have not ended
    base_ns: list[int]
    records: Records  # records that need later ones to be interpreted
    objects: dict[int, Any]  # what these refer to
    idle: bool


@dataclass(frozen=True)
class Mark:
    """Where a recorder began: lengths of lanes, and the open calls of each thread."""

    time_ns: int
    begins: dict[CallLane, int]
    bases: dict[int, list[OpenCall]]
    threads: dict[int, ThreadInfo]
    left: dict[CallLane, Left] = field(default_factory=dict)  # lanes from which a part was taken since


@dataclass(frozen=True)
class CallPiece:
    """The part of a lane that belongs to one recorder."""

    time_ns: np.ndarray
    identity: np.ndarray  # of codes and names
    instruction: np.ndarray
    objects: dict[int, Any]  # codes and names by identity
    info: ThreadInfo
    base: list[OpenCall]
    base_ns: list[int]  # since when each is known to be open
    end_ns: int
    idle: bool = False  # nothing was called: only open calls show this thread
    late: bool = False  # watched only after the recording began, with open calls whose start nobody saw
    goes_on: bool = False  # the calls open at the end are not known yet, and remain
    left: list[Left] = field(default_factory=list)  # in that case, after the calls have become events

    @property
    def records(self) -> Records:
        """The columns that were noted."""
        return self.time_ns, self.identity, self.instruction


_NOTHING = np.zeros(0, np.int64)


class CallLog:
    """All threads' calls, from `start` to `stop`."""

    def __init__(self, budget: CallBudget | None = None) -> None:
        self.budget = budget or CallBudget()
        self.lanes: list[CallLane] = []
        self.watcher: Monitor | ProfileFunctions | None = None
        # The C twin does not count.
        self.native = NATIVE if self.budget.limit is None else None
        self.book: Any = (CallBook() if self.native is None
                          else self.native.CallBook(classify, is_shown, called_name, waits, delegating))

    def start(self) -> None:
        """Begin on all threads."""
        tool = free_tool_id()
        self.watcher = ProfileFunctions(self) if tool is None else Monitor(self, tool)
        self.watcher.start()

    def stop(self) -> None:
        """End on all threads, and restore what was in use before."""
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher = None

    def joined(self, frame: FrameType) -> None:
        """Called by a thread that the runtime did not know."""
        if isinstance(self.watcher, ProfileFunctions):
            self.watcher.join(frame, clock())

    def new_lane(self, thread: threading.Thread | None = None) -> CallLane:
        """A lane for the thread that asks, or for another one."""
        if thread is None:
            # Not current_thread(): that would invent a Thread object for a thread that is still starting.
            ident = threading.get_ident()
            info = ThreadInfo(os.getpid(), threading.get_native_id(), thread_names().get(ident, ""))
        else:
            ident, info = thread.ident or 0, thread_info(thread)
        rows = CallList() if self.native is None else self.native.CallLane(self.book)
        lane = CallLane(rows, info, ident, was_there=thread is not None)
        self.lanes.append(lane)
        return lane

    def mark(self) -> Mark:
        """The current position. A thread that calls something during the look is looked at again."""
        now = clock()  # first: no counted record is older than a call that is found open
        settled: dict[CallLane, int] = {}
        bases: dict[int, list[OpenCall]] = {}
        for _ in range(_MOST_LOOKS):
            begins = {lane: len(lane.rows) for lane in list(self.lanes) if lane not in settled}
            moving = {lane.ident for lane in begins}
            bases.update((ident, open_calls(frame)) for ident, frame in sys._current_frames().items()
                         if ident in moving or ident not in bases)
            settled.update((lane, begin) for lane, begin in begins.items() if len(lane.rows) == begin)
            if all(lane in settled for lane in list(self.lanes)):
                break
        else:
            frames = sys._current_frames()
            for lane in begins.keys() - settled.keys():
                # It never stands still. A call that is open in two looks was open between them.
                again = open_calls(frames.get(lane.ident))
                bases[lane.ident] = again[:common(bases.get(lane.ident, []), again)]
            settled = begins | settled
        threads = {thread.ident: thread_info(thread) for thread in threading.enumerate() if thread.ident is not None}
        return Mark(now, settled, bases, threads)

    def since(self, mark: Mark, end_ns: int) -> list[CallPiece]:
        """What happened since a mark; open calls last until `end_ns` at least."""
        waiting = dict(mark.bases)
        pieces = [self._piece(lane, mark, waiting, end_ns) for lane in self._users_lanes()]
        for ident, base in waiting.items():
            if base and ident in mark.threads:
                pieces.append(CallPiece(_NOTHING, _NOTHING, _NOTHING, {}, mark.threads[ident], base,
                                        [mark.time_ns] * len(base), end_ns, idle=True))
        return pieces

    def drained(self, mark: Mark, end_ns: int) -> dict[CallLane, CallPiece]:
        """What happened since a mark; the log drops it. The code that makes events of it returns what remains."""
        waiting = dict(mark.bases)
        return {lane: self._piece(lane, mark, waiting, end_ns, drain=True) for lane in self._users_lanes()}

    def _users_lanes(self) -> list[CallLane]:
        lanes = list(self.lanes)
        for lane in lanes:
            if lane.info.tid in OUR_THREADS:
                lane.rows.drain()
        return [lane for lane in lanes if lane.info.tid not in OUR_THREADS]

    def _piece(self, lane: CallLane, mark: Mark, waiting: dict[int, list[OpenCall]], end_ns: int,
               drain: bool = False) -> CallPiece:
        """A lane's part; the open calls of its thread are taken from those that wait for an owner."""
        known = mark.threads.get(lane.ident)
        # Identities are reused: the thread of the mark may have ended, and this one may be younger.
        older = known is None or known.tid == lane.info.tid
        base = waiting.get(lane.ident, []) if older else []
        since = [mark.time_ns] * len(base)
        late = lane.base_ns > 0 and lane not in mark.begins and lane not in mark.left
        if late:
            # Watched only after the mark. Calls that were open at the mark have been open all the time.
            same = common(base, lane.base)
            base, since = lane.base, [mark.time_ns] * same + [lane.base_ns] * (len(lane.base) - same)
        if older:
            waiting.pop(lane.ident, None)
        begin = mark.begins.get(lane, 0)
        if isinstance(lane.rows, CallList):
            records = lane.rows.since(begin)
            objects = lane.rows.objects()  # after the records: a signal handler may have called something in between
            if drain:
                lane.rows.forget(begin + len(records[0]))
        else:
            records = tuple(column[begin:] for column in lane.rows.drain()) if drain else lane.rows.since(begin)
            objects = self.book.objects
        left, idle = mark.left.get(lane), lane.was_there
        if left is not None:
            base, since, idle = left.base, left.base_ns, left.idle
            records = tuple(np.concatenate(both) for both in zip(left.records, records))
            objects = {**left.objects, **objects} if left.objects else objects
        times, identities, instructions = records
        return CallPiece(times, identities, instructions, objects, lane.info, base, since, end_ns,
                         idle=idle and not len(times), late=late, goes_on=drain)


class Calls(Source):
    """Lets a log see all threads' calls."""

    name = "calls"
    tables = ("events", "frames", "stacks")
    cost = "a row of three numbers at the start and at the end of each call of the user's program"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.budget = CallBudget()
        self.log: CallLog | None = None

    def wanted(self, options: Options) -> bool:
        """If stacks are requested."""
        return options.stacks

    def start(self) -> None:
        """Begin on all threads."""
        self.budget.limit = None if self.all is None else self.all.limit()
        self.log = CallLog(self.budget)
        self.log.start()
        note_lines(self.log.book if self.log.native is not None else None, users_line)
        HOOK["CALLS"] = True

    def stop(self) -> None:
        """End on all threads."""
        HOOK["CALLS"] = False
        note_lines(None, None)
        if self.log is not None:
            self.log.stop()
            self.log = None

    def joined(self) -> None:
        """Called by a thread that the runtime did not know."""
        if self.log is not None:
            self.log.joined(sys._getframe(2))

    def mark(self) -> Mark:
        """The current position."""
        if self.log is None:
            raise RuntimeError("calls are not being recorded")
        return self.log.mark()

    def take(self, mark: Mark, stretch: Stretch) -> list[CallPiece]:
        """What happened since; open calls last until the end at least."""
        return [] if self.log is None else self.log.since(mark, stretch.end_ns)

    def drained(self, mark: Mark, end_ns: int) -> dict[CallLane, CallPiece]:
        """What happened since; the log drops it."""
        return {} if self.log is None else self.log.drained(mark, end_ns)


def mark_after(mark: Mark, pieces: dict[CallLane, CallPiece]) -> Mark:
    """A recorder's position when these pieces were taken out and made into events."""
    return replace(mark, begins={}, left={**mark.left, **{lane: piece.left[-1] for lane, piece in pieces.items()}})


def common(first: list[OpenCall], second: list[OpenCall]) -> int:
    """The number of outermost calls that are the same frames."""
    same = 0
    for (code, _, frame), (other, _, other_frame) in zip(first, second, strict=False):
        if code is not other or frame != other_frame:
            break
        same += 1
    return same


def thread_info(thread: threading.Thread) -> ThreadInfo:
    """The name of a thread of this process in a trace."""
    return ThreadInfo(os.getpid(), thread.native_id or 0, thread.name)


def thread_names() -> dict[int, str]:
    """Names of the threads that `threading` knows."""
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


def free_tool_id() -> int | None:
    """A free id of `sys.monitoring`, or None."""
    if sys.version_info < (3, 12):
        return None
    for tool in _TOOL_IDS:
        if sys.monitoring.get_tool(tool) is None:
            return tool
    return None
