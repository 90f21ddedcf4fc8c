"""The C twin of the recording code; see `recorder/`."""

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

VERSION: int

def clock() -> int:
    """What `time.perf_counter_ns()` says."""

def set_thread(local: Any, state_type: type) -> None:
    """Threads find their state, of this class, in `local.state`."""

def set_tensor(tensor_type: type, constant_types: tuple[type, ...], descriptions: list[Any] = ...) -> None:
    """Describers may look into tensors, and tell instances of constant types apart by identity."""

def begin(inputs: int | Callable[..., int] | None, in_graph: bool, *values: Any) -> Mark:
    """An op starts. The mark takes the thread's sequence number if the op has a place in the graph.

    The inputs are a number, or a describer that is asked for the values if they are wanted; False describes nothing,
    but like with a describer the uses of the values are noted.
    """

def open(inputs: int | None, sequence: int) -> Mark:
    """A stretch of work starts that has a sequence number of its own, and in which calls are noted."""

def lines(book: CallBook | None) -> None:
    """Have marks know the line of the user's program that made them, in the upper part of the sequence number."""

def forget() -> None:
    """Describers forget the numbers they know."""

def watch(describe: bool, uses: UseLog | None) -> None:
    """Whether `begin` describes values, and where it notes their uses."""

class Mark:
    """An op that has started."""

    def end(self, event: int, inputs: int | None = None) -> None:
        """Append the event, under this id, to its thread's buffer; inputs may come now if they were not known."""

    def resume(self) -> None:
        """Let the thread's calls be noted again, without an event."""

class Budget:
    """Counts the events of all buffers that share it."""

    taken: int
    dropped: int

class EventBuffer:
    """The events of one thread. From `limit` events in all buffers of the budget on, further ones are dropped."""

    def __init__(self, budget: Budget, limit: int = -1) -> None: ...
    def __len__(self) -> int: ...
    def extend(self, event: tuple[int, int, int, int, int | None]) -> None:
        """Append id, start, end, sequence number and inputs."""
    def columns(self) -> tuple[np.ndarray, ...]:
        """An int64 array per field; inputs are -1 for None."""
    def since(self, begin: int) -> EventBuffer:
        """A copy of the events from this one on."""
    def drain(self, begin: int) -> EventBuffer:
        """The events from this one on; this buffer is empty then."""

class Describer:
    """A function from an op's arguments to the number of their description, remembering its results."""

    python: Callable[..., int]
    known: int

    def __init__(self, python: Callable[..., int], plain: bool = False) -> None: ...
    def __call__(self, *values: Any) -> int: ...

class MemoryLog:
    """`(time, thread, bytes, address)` for every allocation, with negative bytes for releases."""

    live_bytes: int
    peak_bytes: int
    allocated_bytes: int
    freed_bytes: int
    allocations: int
    releases: int
    def __len__(self) -> int: ...
    def allocated(self, array: Any) -> None:
        """Note that a new tensor owns this array (or a view of a fresh one)."""
    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """An int64 array per field, of the changes from this one on."""
    def drain(self) -> tuple[np.ndarray, ...]:
        """Time, thread, bytes and address of all changes, which are forgotten."""
    def rest(self) -> None:
        """Forget what was noted and note nothing, but keep watching."""
    def wake(self) -> None:
        """Note again."""
    def reset_peak(self) -> None:
        """Let the peak be what is alive now."""
    def reset_sums(self) -> None:
        """Count from zero what is allocated and freed."""

class UseLog:
    """`(time, thread, position, address, bytes)` for every tensor argument of an op."""

    def __len__(self) -> int: ...
    def used(self, *values: Any) -> None:
        """Note the arguments of an op that is about to start."""
    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """An int64 array per field, of the uses from this one on."""

class CallBook:
    """Remembers what is asked about code objects, built-in functions and places of calls."""

    objects: dict[int, Any]
    def __init__(self, classify: Callable[[CodeType], int], shown: Callable[[FrameType], bool],
                 site: Callable[[FrameType, int, CodeType], str | None]) -> None: ...

class CallLane:
    """`(time, address of a code or name, instruction)` for every begin and end of a call on one thread."""

    def __init__(self, book: CallBook) -> None: ...
    def __len__(self) -> int: ...
    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """An int64 array per field, of the records from this one on."""
    def drain(self) -> tuple[np.ndarray, ...]:
        """An int64 array per field, of all records, which are forgotten."""

class CallProbe:
    """The profile function of a thread."""

    def __init__(self, lane: CallLane, restore: Callable[[], None]) -> None: ...
    def install(self) -> None:
        """Become the calling thread's profile function."""
    def retire(self) -> None:
        """Note nothing more; restore at the next event."""

class CallMonitor:
    """Callbacks for `sys.monitoring`."""

    def __init__(self, book: CallBook, new_lane: Callable[[], CallLane], disable: object) -> None: ...
    def entered(self, code: CodeType, instruction: int) -> Any:
        """For PY_START and PY_RESUME."""
    def left(self, code: CodeType, instruction: int, value: object) -> Any:
        """For PY_RETURN and PY_YIELD."""
    def thrown(self, code: CodeType, instruction: int, error: BaseException) -> Any:
        """For PY_THROW."""
    def unwound(self, code: CodeType, instruction: int, error: BaseException) -> Any:
        """For PY_UNWIND."""
    def called(self, code: CodeType, instruction: int, function: object, first: object) -> Any:
        """For CALL."""
    def c_left(self, code: CodeType, instruction: int, function: object, first: object) -> Any:
        """For C_RETURN and C_RAISE."""
