"""Records calls with `sys.monitoring`, from Python 3.12 on: one callback per kind of event for all threads.

For this package's functions it turns the reports off once. The exception are functions that stand for built-in ones:
the call of one is reported at the caller, its start and end at the function itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ..._dispatch.observer import HOOK
from .call_book import BUILT_IN, DELEGATES, EXIT, FILES, OWN, STAND_IN, classify, delegating, function_name, is_shown

if TYPE_CHECKING:
    from .python_calls import CallLog

clock = HOOK["clock"]
_TOOL_NAME = "mindtorch_v2.profiler"


class Monitor:
    """Listens under a tool id of its own."""

    def __init__(self, log: CallLog, tool: int) -> None:
        self.log = log
        self.tool = tool
        self.callbacks: dict[str, Callable[..., Any]] = {}

    def start(self) -> None:
        """Take the tool id and listen."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        monitoring.use_tool_id(self.tool, _TOOL_NAME)
        self.callbacks = self.all_callbacks()
        wanted = 0
        for name, callback in self.callbacks.items():
            event = getattr(events, name)
            monitoring.register_callback(self.tool, event, callback)
            wanted |= event
        # The ends of calls of built-in functions come with CALL.
        monitoring.set_events(self.tool, wanted & ~(events.C_RETURN | events.C_RAISE))

    def all_callbacks(self) -> dict[str, Callable[..., Any]]:
        """The callbacks by kind of event."""
        disable = sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]
        return (self.native_callbacks(disable) if self.log.native is not None
                else callbacks(_ThreadCalls(self.log), self.log.book, disable))

    def native_callbacks(self, disable: Any) -> dict[str, Callable[..., Any]]:
        """The callbacks of the C twin."""
        probe = self.log.native.CallMonitor(  # type: ignore[union-attr]
            self.log.book, lambda: self.log.new_lane().rows, disable)
        return {"PY_START": probe.entered, "PY_RESUME": probe.entered, "PY_THROW": probe.thrown,
                "PY_RETURN": probe.left, "PY_YIELD": probe.left, "PY_UNWIND": probe.unwound,
                "CALL": probe.called, "C_RETURN": probe.c_left, "C_RAISE": probe.c_left}

    def stop(self) -> None:
        """Stop listening and return the tool id."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        if monitoring.get_tool(self.tool) != _TOOL_NAME:
            return  # the id was not taken yet, or is already returned
        monitoring.set_events(self.tool, 0)
        for name in self.callbacks:
            monitoring.register_callback(self.tool, getattr(monitoring.events, name), None)
        # Reports that were turned off for our files must not stay off for the next owner of the id.
        monitoring.restart_events()
        monitoring.free_tool_id(self.tool)


class _ThreadCalls(threading.local):
    """The state of each thread."""

    def __init__(self, log: CallLog) -> None:
        self.extend = log.budget.extend_of(log.new_lane().rows.flat)
        self.expected: tuple[CodeType, str] | None = None  # a stand-in that is about to begin, and its name
        self.open: list[list[Any]] = []  # stand-ins: code, name, how often it is open inside itself


def callbacks(thread: _ThreadCalls, book: Any, disable: Any) -> dict[str, Callable[..., Any]]:
    """The callbacks by kind of event."""
    users = FILES.users
    now = clock
    frame_at = sys._getframe

    def entered(code: CodeType, instruction: int) -> Any:
        if code.co_filename in users:
            thread.extend((now(), code, instruction))
            return None
        return enter_other(code, instruction)

    def enter_other(code: CodeType, instruction: int) -> Any:
        kind = classify(code)
        expected, thread.expected = thread.expected, None
        if kind == STAND_IN:
            if expected is not None and expected[0] is code:
                thread.open.append([*expected, 0])
                thread.extend((now(), expected[1], BUILT_IN))
            elif thread.open and thread.open[-1][0] is code:
                thread.open[-1][2] += 1
        elif kind == OWN:
            return disable
        elif is_shown(frame_at(2)):
            thread.extend((now(), code, instruction))
        return None

    def left(code: CodeType, instruction: int, value: object) -> Any:
        if code.co_filename in users:
            thread.extend((now(), code, EXIT))
            return None
        return leave_other(code)

    def leave_other(code: CodeType) -> Any:
        kind = classify(code)
        if kind == STAND_IN:
            if thread.open and thread.open[-1][0] is code:
                if thread.open[-1][2]:
                    thread.open[-1][2] -= 1
                else:
                    thread.extend((now(), thread.open.pop()[1], EXIT))
        elif kind == OWN:
            return disable
        elif is_shown(frame_at(2)):
            thread.extend((now(), code, EXIT))
        return None

    # These two cannot be turned off for a place.
    def thrown(code: CodeType, instruction: int, error: BaseException) -> None:
        if classify(code) != OWN:
            for waiting, at in delegating(frame_at(1)):
                thread.extend((now(), waiting, DELEGATES - at))
        if code.co_filename in users:
            thread.extend((now(), code, instruction))
        else:
            enter_other(code, instruction)

    def unwound(code: CodeType, instruction: int, error: BaseException) -> None:
        if code.co_filename in users:
            thread.extend((now(), code, EXIT))
        else:
            leave_other(code)

    def called(code: CodeType, instruction: int, function: Any, first: object) -> Any:
        if code.co_filename not in users:
            return disable
        if type(function) is MethodType:
            function = function.__func__
        if type(function) is FunctionType:
            if classify(function.__code__) == STAND_IN:
                name = book.site(frame_at(1), instruction, function.__code__)
                thread.expected = None if name is None else (function.__code__, name)
            return None
        name = function_name(function, first)
        if name is not None:
            thread.extend((now(), name, BUILT_IN))
        return None

    def c_left(code: CodeType, instruction: int, function: Any, first: object) -> None:
        if code.co_filename in users:
            name = function_name(function, first)
            if name is not None:
                thread.extend((now(), name, EXIT))

    return {"PY_START": entered, "PY_RESUME": entered, "PY_THROW": thrown,
            "PY_RETURN": left, "PY_YIELD": left, "PY_UNWIND": unwound,
            "CALL": called, "C_RETURN": c_left, "C_RAISE": c_left}
