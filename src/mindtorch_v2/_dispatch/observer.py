"""The profiler's hook: one flag in the generated functions' namespace, and names for what they report.

While the flag is set, every op appends `(event id, start ns, end ns, sequence number, inputs)` to its thread's buffer.
The runtime knows nothing else about profilers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import prod
from sys import _getframe, getprofile, setprofile
from threading import get_ident
from time import perf_counter_ns
from typing import Any, TypedDict

from .interning import place_of_new
from .native import NATIVE
from .state import NEW_THREAD, STATES, THREAD, ThreadState


class Hook(TypedDict, total=False):
    """The globals of all generated functions: the slots through which the runtime reports, and what functions call.

    Every op sees a changed value at its next call. The dispatcher adds further names, which only functions use.
    """

    OBSERVING: bool  # whether ops report to a recorder or a tap
    DESCRIBE: bool  # whether their arguments are described
    CALLS: bool  # whether Python calls are recorded
    ALLOCATED: Callable[[Any], None] | None  # called with every array that a new tensor owns
    FAILED: Callable[[int], None] | None  # called with the size of each failed allocation
    MOVED: Callable[[Any, Any], None] | None  # called with each tensor that is about to replace its array
    STEPPED: Callable[[Any], None] | None  # called with each optimizer that made a step
    TAP: Any  # runs ops and sees spans; see `tap`
    USES: Callable[..., None] | None  # called with the arguments of each op that starts
    AUTOCAST: bool  # whether a thread is inside an enabled autocast
    INFERENCE: int  # how many threads are in inference mode
    INFERENCE_SEEN: bool  # whether there was one, ever
    begin: Callable[..., Any]  # if the C twin records: an op starts
    clock: Callable[[], int]
    ndarray_: type
    place: Callable[[], int]  # the line of the program that runs, as a number to add to a sequence number
    setprofile: Callable[[Any], None]
    tell_refusal: Callable[[MemoryError], int | None]
    THREAD: Any


HOOK: Hook = {"INFERENCE": 0, "INFERENCE_SEEN": False, "OBSERVING": False, "DESCRIBE": False, "ALLOCATED": None,
              "USES": None, "STEPPED": None, "CALLS": False, "MOVED": None, "FAILED": None, "TAP": None,
              "clock": perf_counter_ns, "THREAD": THREAD, "setprofile": setprofile}
# The same dictionary, for code that adds names of its own.
NAMES: dict[str, Any] = HOOK  # type: ignore[assignment]
if NATIVE is not None:
    NATIVE.set_thread(THREAD, ThreadState)
    HOOK["begin"] = NATIVE.begin

# Event id -> (name, kind, overload name, op). Ids are given once and never reused.
EVENTS: list[tuple[str, str, str, Any]] = []
_IDS: dict[tuple[str, str, str], int] = {}

# The log of tensor memory on the CPU, from the first recording that watched it. `torch.cpu` gives its figures.
MEMORY_LOGS: list[Any] = []

FIELDS = 5  # integers and references per event in a buffer

_RECORDING = [False]  # whether a recorder is active


def event_id(name: str, kind: str, overload: str = "", op: Any = None) -> int:
    """The id under which events of this name and kind are recorded."""
    key = (name, kind, overload)
    found = _IDS.get(key)
    if found is None:
        # If another thread was faster, its number counts.
        found = _IDS.setdefault(key, place_of_new(EVENTS, (name, kind, overload, op)))
    elif op is not None and EVENTS[found][3] is None:
        EVENTS[found] = (name, kind, overload, op)  # another op used this name before; the FLOPs are this op's
    return found


def tell_refusal(error: MemoryError) -> int | None:
    """The size of a failed allocation, after reporting it once to a recording; None if unknown."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return None  # not an array of NumPy's
    size = prod(shape) * dtype.itemsize
    if HOOK["FAILED"] is not None and not hasattr(error, "told"):
        error.told = True  # type: ignore[attr-defined]
        HOOK["FAILED"](size)
    return size


HOOK["tell_refusal"] = tell_refusal


def observe(new_thread: Callable[[ThreadState], None]) -> None:
    """Start: give every thread, present and future, a list to write to, then raise the flag."""
    NEW_THREAD[0] = new_thread
    for state in list(STATES):
        new_thread(state)
    _RECORDING[0] = HOOK["OBSERVING"] = True


def unobserve() -> None:
    """Stop. Ops that still run on other threads append to their old list, which nothing reads any more."""
    _RECORDING[0] = False
    HOOK["OBSERVING"] = HOOK["TAP"] is not None
    NEW_THREAD[0] = None


def is_recorded() -> bool:
    """Whether a recorder is active: with only a tap, nothing receives events."""
    return _RECORDING[0]


_USES: list[Any] = [None]  # the log of uses, if there is one


def describe(wanted: bool) -> None:
    """Set whether arguments are described."""
    HOOK["DESCRIBE"] = wanted
    if NATIVE is not None:
        NATIVE.watch(wanted, _USES[0])


def note_uses(log: Any) -> None:
    """Set the log for the arguments of ops; None for no log."""
    _USES[0] = log
    HOOK["USES"] = None if log is None else log.used
    if NATIVE is not None:
        NATIVE.watch(HOOK["DESCRIBE"], log)


def tap(listener: Any, place: str = "trace") -> None:
    """Let a listener run all ops and see all spans; None removes it.

    `listener.takes()` says whether it will run the op that asks; then `listener.run(op, inplace, arguments)` runs it by
    calling the op's function again. `listener.enter(event id, sequence number, given values)`, for a backward function
    also with its node, returns an object whose `leave()` is called at the end of the span. Without a recorder the
    events of ops go nowhere. There is one place each for anomaly detection, `vmap`, tangents, code that takes ops over,
    and an execution trace; each passes what it does not take to the next, its `under`.
    """
    _TAPS[place] = listener
    chain = [one for one in _TAPS.values() if one is not None]
    for one, under in zip(chain, [*chain[1:], None]):
        one.under = under
    HOOK["TAP"] = chain[0] if chain else None
    HOOK["OBSERVING"] = HOOK["TAP"] is not None or _RECORDING[0]


_TAPS: dict[str, Any] = dict.fromkeys(("anomaly", "vmap", "tangents", "dispatch", "trace"))  # outermost first


def as_one() -> Any:
    """A context for a function that is made of ops here but is not an op to dispatch modes, as in PyTorch."""
    return getattr(HOOK["TAP"], "hidden", nullcontext)()


LINE_BITS = 40  # a line is in the upper part of a sequence number, which is at least -1
MOST_LINES = (1 << 63 - LINE_BITS) - 1  # a larger line counts as unknown
_LINES: list[Callable[[Any], int] | None] = [None]


def note_lines(book: Any, line_of: Callable[[Any], int] | None) -> None:
    """Set whether events have the line of the user's program that ran; None turns it off.

    The C twin asks the book for the owner of code; `line_of(frame)` is the line for a frame of this package.
    """
    _LINES[0] = line_of
    HOOK["place"] = _no_place if line_of is None else _place
    if NATIVE is not None:
        NATIVE.lines(book)


def _place() -> int:
    """The line of the program that runs now, as a number to add to a sequence number."""
    line_of = _LINES[0]
    line = 0 if line_of is None else line_of(_getframe(1))
    return line << LINE_BITS if line <= MOST_LINES else 0


def _no_place() -> int:
    return 0


HOOK["place"] = _no_place


def hush() -> Any:
    """Stop recording the thread's Python calls until `resume()` of the result; None if that would gain nothing.

    For stretches in which only this package runs: its calls are not part of a recording anyway, but before Python 3.12
    the interpreter is slow at everything while it reports calls. `resume()` must be called in any case: an error that
    is kept keeps the frames that it passed through, and their variables.
    """
    if NATIVE is not None:
        return NATIVE.begin(None, False)
    state = THREAD.state
    probe = state.probe
    return None if probe is None or getprofile() is not probe else _Hush(state, probe)


class _Hush:
    """Pauses the Python function that records this thread's calls."""

    __slots__ = ("probe", "state")

    def __init__(self, state: ThreadState, probe: Any) -> None:
        self.state = state
        self.probe = probe
        state.probe = None
        setprofile(None)

    def resume(self) -> None:
        """Record calls again, once; a probe whose recording has ended removes itself at the next call."""
        probe, self.probe = self.probe, None
        self.__class__ = _Resumed  # type: ignore[assignment]
        if probe is None or self.state.ident != get_ident():
            return  # already done, or its thread has ended: another function must not be set
        if PROBING[0]:
            self.state.probe = probe
        setprofile(probe)

    def __del__(self) -> None:
        # An interrupt can come before the caller has this object, and while it is being made.
        if hasattr(self, "probe"):
            self.resume()


class _Resumed:
    """A hush that has ended: it has no finalizer, because a Ctrl-C during one is lost."""

    __slots__ = _Hush.__slots__
    resume = _Hush.resume


PROBING = [False]  # whether Python functions note calls


class _Stretch:
    """A stretch of work that has started; the twin of a native mark."""

    __slots__ = ("inputs", "seq", "start")

    def __init__(self, inputs: int | None, seq: int) -> None:
        self.inputs = inputs
        self.seq = seq + HOOK["place"]()
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
            self.seq += HOOK["place"]()
            self.start = perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.start:
            THREAD.state.extend((self.id, self.start, perf_counter_ns(), self.seq, self.extra))
            if self.noted is not None:
                self.noted.leave()


class first_use:
    """Report the preparation of something at its first use: this is not time of the user's program."""

    __slots__ = ("name", "start")

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = 0

    def __enter__(self) -> None:
        if HOOK["OBSERVING"]:
            self.start = perf_counter_ns()

    def __exit__(self, *exc: object) -> None:
        if self.start:
            THREAD.state.extend((event_id(f"first use of {self.name}", "first_use"), self.start, perf_counter_ns(), -1,
                                 None))
