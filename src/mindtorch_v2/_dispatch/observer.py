"""The profiler's hook: one flag in the generated functions' namespace, and names for what they report.

While the flag is set, every op appends `(event id, start ns, end ns, sequence number, inputs)` to its thread's buffer.
The runtime knows nothing else about profilers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from sys import getprofile, setprofile
from time import perf_counter_ns
from typing import Any

from .native import NATIVE
from .state import NEW_THREAD, STATES, THREAD, ThreadState

# The globals of all generated functions. A changed value is seen by every op at its next call.
# ALLOCATED, if set, is called with every array that a new tensor owns, USES with the arguments of each op that starts,
# STEPPED with each optimizer that made a step. TAP, if set, is asked to run ops in their own place and hears of spans.
# FAILED, if set, is called with the size of each allocation for which there was no memory, MOVED with each tensor that
# is about to take an array in place of its own. CALLS says whether Python calls are noted.
HOOK: dict[str, Any] = {"OBSERVING": False, "DESCRIBE": False, "ALLOCATED": None, "USES": None, "STEPPED": None,
                        "CALLS": False, "MOVED": None,
                        "FAILED": None, "TAP": None, "clock": perf_counter_ns, "THREAD": THREAD,
                        "setprofile": setprofile}
if NATIVE is not None:
    NATIVE.set_thread(THREAD, ThreadState)
    HOOK["begin"] = NATIVE.begin

# Event id -> (name, kind, overload name, op). Ids are handed out once and never reused.
EVENTS: list[tuple[str, str, str, Any]] = []
_IDS: dict[tuple[str, str, str], int] = {}

# The log of tensor memory on the CPU, from the first recording on that watched it. `torch.cpu` answers from it.
MEMORY_LOGS: list[Any] = []

FIELDS = 5  # integers and references per event in a buffer

_RECORDING = [False]  # whether a recorder is active


def event_id(name: str, kind: str, overload: str = "", op: Any = None) -> int:
    """The id under which events of this name and kind are recorded."""
    key = (name, kind, overload)
    found = _IDS.get(key)
    if found is None:
        found = _IDS[key] = len(EVENTS)
        EVENTS.append((name, kind, overload, op))
    return found


def tell_refusal(error: MemoryError) -> int | None:
    """How much memory the system did not give, after telling a recording of it, once; None if nobody knows."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return None  # not an array of NumPy's
    size = prod(shape) * dtype.itemsize
    if HOOK["FAILED"] is not None and not hasattr(error, "told"):
        error.told = True  # type: ignore[attr-defined]
        HOOK["FAILED"](size)
    return size


HOOK["tell_refusal"] = tell_refusal


def observe(new_thread: Callable[[ThreadState], None], describe: bool) -> None:
    """Start: give every thread, present and future, a list to write to, then raise the flag."""
    NEW_THREAD[0] = new_thread
    for state in list(STATES):
        new_thread(state)
    watch(describe, None)
    _RECORDING[0] = HOOK["OBSERVING"] = True


def unobserve() -> None:
    """Stop. Ops in flight on other threads still append to their old list, which nobody reads any more."""
    _RECORDING[0] = False
    HOOK["OBSERVING"] = HOOK["TAP"] is not None
    watch(False, None)
    NEW_THREAD[0] = None


def watch(describe: bool, uses: Any) -> None:
    """Have arguments described, and their uses noted in a log if there is one."""
    HOOK["DESCRIBE"], HOOK["USES"] = describe, None if uses is None else uses.used
    if NATIVE is not None:
        NATIVE.watch(describe, uses)


def tap(listener: Any) -> None:
    """Let a listener run all ops and hear of all spans, or with None nobody.

    `listener.takes()` says whether it wants to run the op that asks; then `listener.run(op, inplace, arguments)` does,
    by calling the op's function again. `listener.enter(event id, sequence number, given values)`, for a backward
    function with its node as well, returns an object whose `leave()` is called at the end of the span. Without a
    recorder the events of ops go nowhere.
    """
    if None not in (listener, HOOK["TAP"]) and listener is not HOOK["TAP"]:
        raise NotImplementedError("ops cannot be given to a mode and to an execution trace at the same time")
    HOOK["TAP"] = listener
    HOOK["OBSERVING"] = listener is not None or _RECORDING[0]


def hush() -> Any:
    """An object during whose life the thread's Python calls are not noted, or None where that would gain nothing.

    For stretches in which only this package runs: its calls are not part of a recording anyway, but before Python 3.12
    the interpreter is slow at everything while it has calls to note.
    """
    if NATIVE is not None:
        return NATIVE.begin(None, False)
    probe = THREAD.state.probe
    return None if probe is None or getprofile() is not probe else _Hush()


class _Hush:
    """Pauses the Python function that notes this thread's calls, until it is let go of."""

    __slots__ = ("probe", "state")

    def __init__(self) -> None:
        self.state = THREAD.state
        self.probe, self.state.probe = self.state.probe, None
        setprofile(None)

    def __del__(self) -> None:
        resume(self.state, self.probe)


def resume(state: ThreadState, probe: Any) -> None:
    """Note calls of the current thread again; a probe whose recording has ended removes itself at the next call."""
    if PROBING[0]:
        state.probe = probe
    setprofile(probe)


PROBING = [False]  # whether Python functions note calls


class _Stretch:
    """A stretch of work that has started; the twin of a native mark."""

    __slots__ = ("inputs", "seq", "start")

    def __init__(self, inputs: int | None, seq: int) -> None:
        self.inputs = inputs
        self.seq = seq
        self.start = perf_counter_ns()

    def end(self, event: int) -> None:
        """Append the event, under this id, to the thread's buffer."""
        THREAD.state.extend((event, self.start, perf_counter_ns(), self.seq, self.inputs))


open_stretch: Any = _Stretch if NATIVE is None else NATIVE.open


class span:
    """Report a stretch of runtime work that is not an op (a backward node, an optimizer step)."""

    __slots__ = ("extra", "given", "id", "noted", "seq", "start")

    def __init__(self, event: int, seq: int = -1, extra: Any = None, given: tuple[Any, ...] = ()) -> None:
        self.id = event
        self.seq = seq
        self.extra = extra
        self.given = given
        self.noted: Any = None
        self.start = 0

    def __enter__(self) -> span:
        if HOOK["OBSERVING"]:
            listener = HOOK["TAP"]
            if listener is not None:
                self.noted = listener.enter(self.id, self.seq, self.given)
            self.start = perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.start:
            THREAD.state.extend((self.id, self.start, perf_counter_ns(), self.seq, self.extra))
            if self.noted is not None:
                self.noted.leave()
