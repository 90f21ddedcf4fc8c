"""Python function calls while a recording wants stacks: who was called when, on every thread.

A call is two records of three items in its thread's list: `(time, code, instruction)` when a frame is entered or
resumed and `(time, code, EXIT)` when it returns, yields or is unwound. `python_stacks` makes events of them.

From Python 3.12 on, `sys.monitoring` reports all threads to one callback, and says of this package's functions once
that it need not report them again. Before, each thread has a profile function of its own: the thread that starts the
recording gets it at once, threads born later get it from `threading.setprofile`, and threads that were alive already
at their next op, since one thread cannot set another's. Calls of built-in functions are left out: an op of this
runtime makes dozens of them, so that they would cost many times the op.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import ml_dtypes
import numpy as np

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK
from ..._dispatch.state import STATES, ThreadState
from ..trace import ThreadInfo

clock = HOOK["clock"]

CALL_FIELDS = 3  # time, code, instruction
EXIT = -2  # in place of an instruction; a frame that has not begun is at -1

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_PACKAGE_NAME = __name__.partition(".")[0]
GENERATED = "<mindtorch_v2 "  # what the file names of compiled ops begin with

_TOOL_IDS = (2, 3, 4, 1, 5, 0)  # of sys.monitoring; 2 is the one meant for profilers
_TOOL_NAME = "mindtorch_v2.profiler"

OpenCall = tuple[CodeType, int]  # code and line


# Whose code a file is. This package's is no part of the user's program, and a library's only if the user called it.
USERS, OWN, LIBRARY = 0, 1, 2

_LIBRARIES = tuple(os.path.join(os.path.dirname(package.__file__), "") for package in (np, ml_dtypes))
_STANDARD = (os.path.join(sysconfig.get_path("stdlib"), ""), "<frozen ", "<__array_function__ ")
_INSTALLED = os.sep + "site-packages" + os.sep  # a directory inside the standard library's
_WRITTEN_BY_DATACLASS = "<string>"  # and the name of what `python -c` runs
_LONGEST_WALK = 50


class Files(dict[str, int]):
    """File name -> whose code it is. The user's files are also in a set, which is quicker to ask."""

    def __init__(self) -> None:
        super().__init__()
        self.users: set[str] = set()

    def __missing__(self, file: str) -> int:
        if file.startswith((PACKAGE, GENERATED)):
            found = OWN
        elif file == _WRITTEN_BY_DATACLASS or file.startswith(_LIBRARIES) or (
                file.startswith(_STANDARD) and _INSTALLED not in file):
            found = LIBRARY
        else:
            found = USERS
            self.users.add(file)
        self[file] = found
        return found


FILES = Files()


def on_our_behalf(frame: FrameType) -> bool:
    """Whether it was this package that called into a library. The answer is the same when the frame is left."""
    if frame.f_code.co_filename == _WRITTEN_BY_DATACLASS:
        return str(frame.f_globals.get("__name__")).startswith(_PACKAGE_NAME)
    caller = frame.f_back
    for _ in range(_LONGEST_WALK):
        if caller is None:
            return False
        kind = FILES[caller.f_code.co_filename]
        if kind != LIBRARY:
            return kind == OWN
        caller = caller.f_back
    return False


def is_shown(frame: FrameType) -> bool:
    """Whether a frame is part of the user's program."""
    kind = FILES[frame.f_code.co_filename]
    return kind == USERS or (kind == LIBRARY and not on_our_behalf(frame))


def open_calls(frame: FrameType | None) -> list[OpenCall]:
    """The user's part of a stack, outermost first."""
    found = []
    while frame is not None:
        if is_shown(frame):
            found.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
        frame = frame.f_back
    return found[::-1]


@dataclass(eq=False)
class CallLane:
    """The calls of one thread."""

    calls: list[Any]
    info: ThreadInfo
    ident: int
    base: list[OpenCall] = field(default_factory=list)  # open when the first call was noted
    base_ns: int = 0
    retire: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Mark:
    """Where a recorder began: lengths of lanes, and what was open on each thread."""

    time_ns: int
    begins: dict[CallLane, int]
    bases: dict[int, list[OpenCall]]
    threads: dict[int, ThreadInfo]


@dataclass(frozen=True)
class CallPiece:
    """The part of a lane that belongs to one recorder."""

    calls: Sequence[Any]
    info: ThreadInfo
    base: list[OpenCall]
    start_ns: int
    end_ns: int
    idle: bool  # nothing was called: only what was open tells about this thread


class CallLog:
    """All threads' calls, from `start` to `stop`."""

    def __init__(self) -> None:
        self.lanes: list[CallLane] = []
        self.watcher: Monitor | ProfileFunctions | None = None

    def start(self) -> None:
        """Begin on all threads."""
        tool = free_tool_id()
        self.watcher = ProfileFunctions(self) if tool is None else Monitor(self, tool)
        self.watcher.start()

    def stop(self) -> None:
        """End on all threads, and give back what was in use before."""
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher = None

    def joined(self) -> None:
        """A thread that was not known to the runtime reports itself."""
        if isinstance(self.watcher, ProfileFunctions):
            self.watcher.join(sys._getframe(1), clock())

    def new_lane(self) -> CallLane:
        """A lane for the thread that asks."""
        # Not current_thread(): that would invent a Thread object for a thread that is still starting.
        ident = threading.get_ident()
        info = ThreadInfo(os.getpid(), threading.get_native_id(), thread_names().get(ident, ""))
        lane = CallLane([], info, ident)
        self.lanes.append(lane)
        return lane

    def mark(self) -> Mark:
        """Where things stand now. Taken again if another thread called something meanwhile."""
        for _ in range(100):
            begins = {lane: len(lane.calls) for lane in list(self.lanes)}
            now = clock()
            bases = {ident: open_calls(frame) for ident, frame in sys._current_frames().items()}
            if all(len(lane.calls) == begins.get(lane) for lane in list(self.lanes)):
                break
        threads = {thread.ident: ThreadInfo(os.getpid(), thread.native_id or 0, thread.name)
                   for thread in threading.enumerate() if thread.ident is not None}
        return Mark(now, begins, bases, threads)

    def since(self, mark: Mark) -> list[CallPiece]:
        """What happened since a mark."""
        now = clock()
        pieces = []
        waiting = dict(mark.bases)
        for lane in list(self.lanes):
            size = len(lane.calls) // CALL_FIELDS * CALL_FIELDS
            begin = mark.begins.get(lane, 0)
            known = mark.threads.get(lane.ident)
            # Identities are reused: the thread that the mark saw may be over, and this one younger.
            older = known is None or known.tid == lane.info.tid
            base, since = (waiting.get(lane.ident, []), mark.time_ns) if older else ([], now)
            if lane.base_ns and lane not in mark.begins:
                base, since = lane.base, lane.base_ns
            if older:
                waiting.pop(lane.ident, None)
            pieces.append(CallPiece(lane.calls[begin:size], lane.info, base, since, now, False))
        for ident, base in waiting.items():
            if base and ident in mark.threads:
                pieces.append(CallPiece((), mark.threads[ident], base, mark.time_ns, now, True))
        return pieces


def thread_names() -> dict[int, str]:
    """Names of the threads that `threading` knows."""
    return {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}


def free_tool_id() -> int | None:
    """An id of `sys.monitoring` that nobody uses, or None."""
    if sys.version_info < (3, 12):
        return None
    for tool in _TOOL_IDS:
        if sys.monitoring.get_tool(tool) is None:
            return tool
    return None


class _ThreadCalls(threading.local):
    """Per thread, the `extend` of its list."""

    def __init__(self, log: CallLog) -> None:
        self.extend = log.new_lane().calls.extend


class Monitor:
    """Calls by `sys.monitoring`: one callback per kind of event for all threads."""

    def __init__(self, log: CallLog, tool: int) -> None:
        self.log = log
        self.tool = tool

    def start(self) -> None:
        """Take the tool id and listen."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        monitoring.use_tool_id(self.tool, _TOOL_NAME)
        self.callbacks = _callbacks(_ThreadCalls(self.log), monitoring.DISABLE)
        wanted = 0
        for name, callback in self.callbacks.items():
            event = getattr(events, name)
            monitoring.register_callback(self.tool, event, callback)
            wanted |= event
        monitoring.set_events(self.tool, wanted)

    def stop(self) -> None:
        """Stop listening and return the tool id."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        monitoring.set_events(self.tool, 0)
        for name in self.callbacks:
            monitoring.register_callback(self.tool, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(self.tool)
        # What was switched off for our files must not stay so for the next owner of the id.
        monitoring.restart_events()


def _callbacks(thread: _ThreadCalls, disable: Any) -> dict[str, Callable[..., Any]]:
    users = FILES.users
    now = clock
    frame_at = sys._getframe

    def entered(code: CodeType, instruction: int) -> Any:
        if code.co_filename in users or is_shown(frame_at(1)):
            thread.extend((now(), code, instruction))
            return None
        return disable if FILES[code.co_filename] == OWN else None

    def left(code: CodeType, instruction: int, value: object) -> Any:
        if code.co_filename in users or is_shown(frame_at(1)):
            thread.extend((now(), code, EXIT))
            return None
        return disable if FILES[code.co_filename] == OWN else None

    # These two cannot be switched off for a file.
    def thrown(code: CodeType, instruction: int, error: BaseException) -> None:
        if code.co_filename in users or is_shown(frame_at(1)):
            thread.extend((now(), code, instruction))

    def unwound(code: CodeType, instruction: int, error: BaseException) -> None:
        if code.co_filename in users or is_shown(frame_at(1)):
            thread.extend((now(), code, EXIT))

    return {"PY_START": entered, "PY_RESUME": entered, "PY_THROW": thrown,
            "PY_RETURN": left, "PY_YIELD": left, "PY_UNWIND": unwound}


class ProfileFunctions:
    """Calls by `sys.setprofile`: a function per thread, which takes itself away when the recording has ended."""

    def __init__(self, log: CallLog) -> None:
        self.log = log
        self.active = False
        self.before_threads: Any = None  # what was set for new threads
        self.mine = threading.local()  # .function: what this thread has from us
        self.armed: list[tuple[ThreadState, Callable[..., None], Callable[..., None]]] = []

    def start(self) -> None:
        """Set the function on this thread, for threads to come, and on other threads at their next op."""
        self.active = True
        self.before_threads = threading.getprofile()
        self.hook = self.first_event  # one object, so that `stop` recognises it
        threading.setprofile(self.hook)
        here = threading.get_ident()
        for state in list(STATES):
            if state.ident != here:
                self.arm(state)
        self.install(sys.getprofile())

    def stop(self) -> None:
        """Restore. Other threads restore themselves at their next call or return."""
        self.active = False
        if threading.getprofile() is self.hook:
            threading.setprofile(self.before_threads)
        for state, shim, extend in self.armed:
            if state.extend is shim:
                state.extend = extend  # type: ignore[method-assign,assignment,unused-ignore]
        for lane in self.log.lanes:
            lane.retire()
        function = getattr(self.mine, "function", None)
        if function is not None and sys.getprofile() is function:
            sys.setprofile(self.mine.before)

    def arm(self, state: ThreadState) -> None:
        """Let another thread set its function when it next reports an op."""
        extend = state.extend

        def shim(event: Any) -> None:
            state.extend = extend  # type: ignore[method-assign,unused-ignore]
            # The caller of the op is what was open when the op began.
            self.join(sys._getframe(1), event[1])
            extend(event)

        state.extend = shim  # type: ignore[method-assign,assignment,unused-ignore]
        self.armed.append((state, shim, extend))

    def join(self, frame: FrameType | None, since_ns: int) -> None:
        """Watch the thread that calls this, unless it is watched already."""
        if self.active and getattr(self.mine, "function", None) is None:
            lane = self.install(sys.getprofile())
            lane.base, lane.base_ns = open_calls(frame), since_ns

    def first_event(self, frame: FrameType, event: str, argument: object) -> None:
        """The profile function of new threads: gives way to one of the thread's own."""
        if not self.active:
            sys.setprofile(self.before_threads)
            return
        lane = self.install(self.before_threads)
        lane.base, lane.base_ns = open_calls(frame.f_back if event == "call" else frame), clock()
        self.mine.note(frame, event, argument)

    def install(self, before: Any) -> CallLane:
        """Set this thread's function."""
        lane = self.log.new_lane()
        self.mine.before = before
        self.mine.note, self.mine.function = _profile_function(lane, before)
        if self.mine.function is self.mine.note:
            sys.setprofile(self.mine.function)
        else:
            self.mine.function.install()
        return lane


def _profile_function(lane: CallLane, before: Any) -> tuple[Callable[[FrameType, str, object], None], Any]:
    """A thread's profile function, and what to install: itself, or its C twin that asks it about libraries."""
    note: Callable[[tuple[Any, ...]], None] = lane.calls.extend
    users, files = FILES.users, FILES
    now = clock

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename in users or (files[code.co_filename] != OWN and is_shown(frame)):
                note((now(), code, frame.f_lasti))
        elif event == "return":
            code = frame.f_code
            if code.co_filename in users or (files[code.co_filename] != OWN and is_shown(frame)):
                note((now(), code, EXIT))

    installed: Any = profile

    def restore(*record: object) -> None:
        if sys.getprofile() is installed:
            sys.setprofile(before)

    def retire() -> None:
        nonlocal note
        note = restore

    lane.retire = retire
    if NATIVE is not None:
        installed = NATIVE.CallProbe(lane.calls, users, files, profile, restore, OWN, EXIT)
        lane.retire = installed.retire
    return profile, installed
