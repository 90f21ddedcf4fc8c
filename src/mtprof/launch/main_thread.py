"""Work that only the main thread can do, requested by another thread."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable

PATIENCE_S = 10.0  # time for the main thread to begin: it may be in a long call, or hang

# A signal that programs do not use themselves.
_SIGNAL: int = signal.SIGRTMAX - 1 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2

_Request = tuple[Callable[[], None], threading.Event, threading.Event]  # what to do; set when begun; set when done


class MainThread:
    """Made on the main thread. A signal interrupts a wait or a sleep of that thread, which then continues."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        signal.signal(_SIGNAL, lambda *_: self._work())

    def do(self, act: Callable[[], None], patience_s: float = PATIENCE_S) -> bool:
        """Request the work and wait for its end; returns whether it began in time."""
        main = threading.main_thread()
        if threading.current_thread() is main:
            act()
            return True
        begun, done = threading.Event(), threading.Event()
        self._asked.put((act, begun, done))
        if main.ident is not None:
            signal.pthread_kill(main.ident, _SIGNAL)
        if not begun.wait(patience_s):
            return False
        done.wait()
        return True

    def _work(self) -> None:
        while True:
            try:
                act, begun, done = self._asked.get_nowait()
            except queue.Empty:
                return
            begun.set()
            try:
                act()
            finally:
                done.set()
