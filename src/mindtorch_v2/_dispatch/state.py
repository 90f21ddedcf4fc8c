"""The state of each thread: grad mode, the autograd sequence number and the buffer for its events.

One attribute look-up on a `threading.local` costs as much as reading the clock, so all state per thread is in the
single attribute `THREAD.state`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any


class Nowhere:
    """Receives events while no recorder needs them, and keeps nothing."""

    __slots__ = ()

    def extend(self, event: tuple[Any, ...]) -> None:
        """Drop an event."""

    def __len__(self) -> int:
        return 0


NOWHERE = Nowhere()


class ThreadState:
    """The runtime's state for one thread."""

    __slots__ = ("__weakref__", "any_layout", "autocast", "default_device", "endings", "events", "exposed", "extend",
                 "grad", "grad_inside", "ident", "inference", "native_id", "outer_devices", "pack_hooks", "paused",
                 "probe", "seq", "thread", "transforms", "vmaps", "walk")

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.grad_inside = False  # the value set inside inference mode, where `grad` is False
        self.autocast = False  # whether listed ops cast their arguments, see `autocast`
        self.seq = 0
        self.ident = threading.get_ident()
        self.native_id = threading.get_native_id()
        self.thread = weakref.ref(threading.current_thread())
        self.pack_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.exposed = 0  # how often a program's code got an op's operands, by a dispatch mode or as a kernel
        self.endings: list[Callable[[], None]] | None = None  # called when the running backward has ended
        self.transforms = 0  # running transforms of `torch.func`
        self.vmaps = 0  # those of them that go example by example
        self.any_layout = False  # whether a leaf takes over a gradient that has another memory order
        self.walk: Any = None  # the running backward pass
        self.default_device: Any = None
        self.outer_devices: list[Any] = []  # the defaults that contexts of devices restore
        # The Python function that records this thread's calls, and one that has paused for the op that begins.
        self.probe: Callable[..., None] | None = None
        self.paused: Callable[..., None] | None = None
        self.record_into(NOWHERE)
        STATES.add(self)
        given: Callable[[ThreadState], None] | None = None
        while NEW_THREAD[0] is not given:  # another recorder may take over meanwhile
            given = NEW_THREAD[0]
            if given is not None:
                given(self)

    def record_into(self, events: Any) -> None:
        """Send this thread's events to a list or a native buffer. `extend` is bound here once, off the hot path."""
        self.events = events
        self.extend: Callable[[tuple[Any, ...]], None] = events.extend


class States:
    """The states of all living threads.

    Not a WeakSet: it cannot be iterated while threads begin, and its callback is Python code, which loses a Ctrl-C.
    """

    def __init__(self) -> None:
        self._known: set[weakref.ref[ThreadState]] = set()

    def add(self, state: ThreadState) -> None:
        """A thread has begun."""
        self._known.add(weakref.ref(state, self._known.discard))

    def __iter__(self) -> Iterator[ThreadState]:
        return iter([state for known in list(self._known) if (state := known()) is not None])


STATES = States()
# Called with each new ThreadState while a recorder is active, so that threads born during a recording are seen.
NEW_THREAD: list[Callable[[ThreadState], None] | None] = [None]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()


THREAD = _Thread()


def _new_ids() -> None:
    """A forked child continues in the thread that forked, which has other system ids there."""
    THREAD.state.ident, THREAD.state.native_id = threading.get_ident(), threading.get_native_id()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_ids)
