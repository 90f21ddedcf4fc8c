"""Records calls with `sys.setprofile`, before Python 3.12: a function per thread, removed when the recording has ended.

The thread that starts the recording gets one at once, and new threads get it from `threading.setprofile`. Threads that
were already alive get it at once from the C twin; without that, they get it at their next op, because in Python one
thread cannot set another's.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from sys import setprofile
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK, PROBING
from ..._dispatch.state import STATES, THREAD, ThreadState
from .call_book import (
    BUILT_IN,
    DELEGATES,
    EXIT,
    FILES,
    GENERATORS,
    OWN,
    STAND_IN,
    classify,
    delegating,
    function_name,
    is_shown,
    open_calls,
    waits,
)

if TYPE_CHECKING:
    from .python_calls import CallLane, CallLog

clock = HOOK["clock"]
OP = "<mindtorch_v2 op "  # the beginning of file names of ops' functions
ENDS_PAUSE = "p_"  # the variable of an op's function that ends a pause, see `codegen`
UNKNOWN = (-1, False)
FIRST_YIELD = 0 if sys.version_info < (3, 11) else 8  # no generator waits at an instruction before this one
QUIET = (OWN, STAND_IN)  # frames that are not shown unchanged


class ProfileFunctions:
    """Sets the functions and removes them."""

    def __init__(self, log: CallLog) -> None:
        self.log = log
        self.active = False
        self.before_threads: Any = None  # the function for new threads before ours
        self.hook = self.first_event  # one object, so that `stop` recognises it
        self.mine = threading.local()  # .function: our function on this thread
        self.others: set[int] = set()  # idents of threads that got a function from another thread
        self.armed: list[tuple[ThreadState, Callable[..., None], Callable[..., None]]] = []

    def start(self) -> None:
        """Set the function on this thread, on new threads, and on other threads, if necessary at their next op."""
        self.active = True
        self.before_threads = threading.getprofile()
        threading.setprofile(self.hook)
        here = threading.get_ident()
        if self.log.native is not None:
            for thread in threading.enumerate():
                if thread.ident is not None and thread.ident != here:
                    self.install_on(thread)
        for state in list(STATES):
            if state.ident != here and state.ident not in self.others:
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
        PROBING[0] = False
        for state in list(STATES):
            state.probe = None
        for lane in self.log.lanes:
            lane.retire()
        function = getattr(self.mine, "function", None)
        if function is not None and sys.getprofile() is function:
            put_back(self.mine.before)

    def arm(self, state: ThreadState) -> None:
        """Let another thread set its function when it next reports an op."""
        extend = state.extend
        joined = False

        def shim(event: Any) -> None:
            # It stays until `stop`: removing it here could remove what a later recording has set meanwhile.
            nonlocal joined
            if not joined:
                joined = True
                # The caller of the op was open when the op began.
                self.join(sys._getframe(1), event[1])
            extend(event)

        state.extend = shim  # type: ignore[method-assign,assignment,unused-ignore]
        self.armed.append((state, shim, extend))

    def join(self, frame: FrameType | None, since_ns: int) -> None:
        """Watch the thread that calls this, unless it is already watched."""
        # Identities are reused: a thread without a function is not the one that got it.
        watched = threading.get_ident() in self.others and sys.getprofile() is not None
        if self.active and getattr(self.mine, "function", None) is None and not watched:
            lane = self.install(sys.getprofile())
            lane.base, lane.base_ns = open_calls(frame), since_ns

    def first_event(self, frame: FrameType, event: str, argument: object) -> None:
        """The profile function of new threads: a thread's own function takes precedence."""
        if not self.active:
            put_back(self.before_threads)
            return
        if event not in ("call", "return"):
            return
        # The caller is recorded as open: only this function was told about the call.
        lane = self.install(self.before_threads)
        lane.base, lane.base_ns = open_calls(frame if event == "call" else frame.f_back), clock()

    def install_on(self, thread: threading.Thread) -> None:
        """Set another thread's function, if it has none."""
        lane = self.log.new_lane(thread)
        if self.function_of(lane, None).install_on(thread.ident):
            self.others.add(lane.ident)
        else:
            self.log.lanes.remove(lane)

    def install(self, before: Any) -> CallLane:
        """Set this thread's function."""
        lane = self.log.new_lane()
        self.mine.before = before
        self.mine.function = installed = self.function_of(lane, before)
        if self.log.native is None:
            PROBING[0] = True
            here = threading.get_ident()
            for state in list(STATES):  # not THREAD.state, which may be under construction
                if state.ident == here:
                    state.probe = installed
            sys.setprofile(installed)
        else:
            installed.install()
        return lane

    def function_of(self, lane: CallLane, before: Any) -> Any:
        """The function to install on a lane's thread, or its C twin."""
        installed: Any = None

        def restore() -> None:
            if sys.getprofile() is installed:
                put_back(before)

        if self.log.native is not None:
            installed = self.log.native.CallProbe(lane.rows, restore)
            lane.retire = installed.retire
        else:
            installed, lane.retire = profile_function(self.log, lane, restore)
        return installed


def put_back(before: Any) -> None:
    """Restore a thread's previous profile function."""
    sys.setprofile(before if callable(before) else None)
    if before is not None and not callable(before):
        # Not a Python function: only cProfile can set its own.
        if hasattr(before, "enable"):
            before.enable()
        else:
            warnings.warn(f"the profile function of {type(before).__name__} is gone: a recording with "
                          "stacks took its place, and only its owner can set it again", RuntimeWarning, stacklevel=2)


def profile_function(log: CallLog, lane: CallLane, restore: Callable[[], None],
                     ) -> tuple[Callable[[FrameType, str, Any], None], Callable[[], None]]:
    """A thread's profile function, and a function that stops it and restores the previous one at its next call."""
    note = log.budget.extend_of(lane.rows.flat)
    users, site, sites = FILES.users, log.book.site, log.book.sites
    opened: list[tuple[int, str]] = []  # recorded stand-ins: identity of the frame, and name
    kinds: dict[int, tuple[int, bool]] = {}  # by identity of the code; whether it is an op, which ends the pause
    kept: list[CodeType] = []  # so that identities stay unique
    now = clock
    retired = False
    state: ThreadState | None = None  # of the thread that this function is called on
    quiet = False  # whether the innermost open frame is not the user's

    def note_waiting(frame: FrameType) -> None:
        for waiting, at in delegating(frame):
            note((now(), waiting, DELEGATES - at))

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal quiet, state
        if quiet:
            if event != "call" and event != "return":
                return
            quiet = False
        code = frame.f_code
        if code.co_filename in users:
            if event == "call":
                at = frame.f_lasti
                if at >= FIRST_YIELD and code.co_flags & GENERATORS:
                    above = frame.f_back
                    if above is not None:
                        calling = above.f_code
                        if calling.co_flags & GENERATORS and waits(calling, above.f_lasti):
                            note_waiting(frame)
                note((now(), code, at))
            elif event == "return":
                note((now(), code, EXIT))
            else:
                name = function_name(argument)
                if name is not None:
                    note((now(), name, BUILT_IN if event == "c_call" else EXIT))
            if retired:
                restore()
        elif event == "call":
            quiet = True
            known = kinds.get(id(code))
            if known is None:
                # Only a function that ends the pause: not that of an op that records natively, and not one that asks
                # the program's `__torch_function__` instead of an op.
                is_op = NATIVE is None and code.co_filename.startswith(OP) and ENDS_PAUSE in code.co_varnames
                known = kinds[id(code)] = classify(code), is_op
                kept.append(code)
            kind, is_op = known
            if kind == STAND_IN:
                caller = frame.f_back
                if caller is not None:
                    calling = caller.f_code
                    if calling.co_filename in users:
                        place = caller.f_lasti
                        found = sites.get((id(calling), place, id(code)))
                        name = site(caller, place, code) if found is None else found[0]
                        if name is not None:
                            opened.append((id(frame), name))
                            note((now(), name, BUILT_IN))
            elif kind != OWN and is_shown(frame):
                if code.co_flags & GENERATORS:
                    note_waiting(frame)
                note((now(), code, frame.f_lasti))
            if retired:
                restore()
            elif is_op:
                if state is None:
                    state = THREAD.state
                state.paused = profile
                setprofile(None)
        elif event == "return":
            if opened and opened[-1][0] == id(frame):
                note((now(), opened.pop()[1], EXIT))
            elif kinds.get(id(code), UNKNOWN)[0] not in QUIET and is_shown(frame):
                note((now(), code, EXIT))
            if retired:
                restore()

    def retire() -> None:
        nonlocal note, retired
        retired = True
        note = _nothing

    return profile, retire


def _nothing(record: tuple[Any, ...]) -> None:
    """Record nothing after the end."""
