"""`Work`: a running collective or message, and the thread that moves it on.

A work is a generator that yields what it waits for: a request of MPI, or a function that says whether it may continue.
A thread that waits for a work moves it (`poll`) in a loop, so a wait has a timeout and notices ranks that are gone. One
thread moves the works that nothing waits for, which is how compute hides communication: MPI itself moves data only
inside its calls.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from datetime import timedelta
from typing import Any

from .._dispatch.observer import HOOK
from ..futures import Future
from ._errors import DistBackendError
from ._mpi import LOCK
from ._observed import Observed
from ._peers import board

__all__ = ["Steps", "Work"]

Steps = Generator[Any, None, Any]

_SPINS = 50               # polls before a wait gives up the processor
# A thread that yields goes to the end of the queue; one that sleeps comes back to its front. So if a yield lets others
# run this long, there are more processes than processors, and for a while sleeping is the faster way to wait.
_TURN_SECONDS = 0.0005
_CROWDED_SECONDS = 1.0
_MOVE_SECONDS = 0.0005    # between moves of works that nothing waits for; each takes the interpreter from the program
_PATIENCE_SECONDS = 1.0   # after this, a wait sleeps between polls
_LOOK_SECONDS = 0.05      # between checks for ranks that are gone
_GRACE_SECONDS = 1.0      # messages that a rank sent before it was gone may still arrive

_crowded_until = 0.0      # whether the last waits found the machine crowded


class Work:
    """The result of `async_op=True`: `wait()` returns when the tensors may be used."""

    def __init__(self, name: str, steps: Steps, ranks: list[int], timeout: timedelta, result: list[Any],
                 observed: Observed | None = None) -> None:
        self.name = name
        self._steps = steps
        self._ranks = ranks
        self._timeout = timeout
        self._result = result
        self.observed = observed
        self._awaited: Any = None
        self._done = False
        self._error: BaseException | None = None
        self._source = -1
        self._waiters = 0  # threads in `wait`, which move it
        self._future: Future[Any] | None = None
        self._begun = time.monotonic()
        self._gone_since: float | None = None
        self.poll()

    def __repr__(self) -> str:
        state = "failed" if self._error else "completed" if self._done else "under way"
        return f"<Work {self.name}: {state}>"

    # -- moving on ------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Move on as far as possible without waiting; returns whether it has ended."""
        if self._done:
            return True
        with LOCK:
            if self._done:
                return True
            try:
                while self._awaited is None or self._ready():
                    self._awaited = next(self._steps)
                return False
            except StopIteration as end:
                if end.value is not None:
                    self._source = end.value
                self._finish(None)
            except DistBackendError as error:
                self._finish(error)
            except Exception as error:
                self._finish(DistBackendError(f"{self.name} over MPI: {error}"), error)
        return True

    def _ready(self) -> bool:
        awaited = self._awaited
        return awaited() if callable(awaited) else awaited.Test()

    def _finish(self, error: BaseException | None, cause: BaseException | None = None) -> None:
        if error is not None:
            error.__cause__ = cause
        self._error, self._done = error, True
        if self.observed is not None:
            self.observed.ended()
        if self._future is not None:
            self._settle(self._future)

    def _give_up(self, reason: str) -> None:
        with LOCK:
            if not self._done:
                board().broken = True
                self._steps.close()
                self._finish(DistBackendError(reason))

    def check(self) -> None:
        """End with an error if a rank is gone or the time is up."""
        gone = board().gone(self._ranks)
        if gone is not None:
            self._gone_since = self._gone_since or time.monotonic()
            if time.monotonic() - self._gone_since > _GRACE_SECONDS and not self.poll():
                self._give_up(f"{self.name}: {gone}, while this rank waits for it")
                return
        if time.monotonic() - self._begun > self._timeout.total_seconds():
            behind = board().behind(self._ranks)
            who = f"; ranks that have not come this far: {', '.join(map(str, behind))}" if behind else ""
            milliseconds = round(self._timeout.total_seconds() * 1000)
            self._give_up(f"{self.name}: timed out after waiting {milliseconds}ms for ranks {self._ranks}{who}")

    # -- PyTorch's face -------------------------------------------------------------------------------------------

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Return when it has ended; raises its error."""
        if timeout is not None and timeout > timedelta(0):
            self._begun, self._timeout = time.monotonic(), timeout
        began_ns = 0 if self.observed is None else HOOK["clock"]()
        self._waiters += 1
        try:
            self._move_to_the_end()
        finally:
            self._waiters -= 1
        if self.observed is not None:
            self.observed.waited(began_ns)
        if self._error is not None:
            raise self._error
        return True

    def _move_to_the_end(self) -> None:
        global _crowded_until
        polls, started = 0, time.monotonic()
        look = started + _LOOK_SECONDS
        while not self.poll():
            polls += 1
            if polls < _SPINS and started > _crowded_until:
                continue
            now = time.monotonic()
            if now > look:
                self.check()
                look = now + _LOOK_SECONDS
            if now - started > _PATIENCE_SECONDS:
                time.sleep(0.0002)
            elif now < _crowded_until:
                time.sleep(0.00002)
            else:
                os.sched_yield()
                yielded = time.monotonic()
                if yielded - now > _TURN_SECONDS:
                    _crowded_until = yielded + _CROWDED_SECONDS

    def synchronize(self) -> None:
        """The same as `wait`: there are no streams on the CPU."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it has ended, with or without an error."""
        return self.poll()

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self.poll() and self._error is None

    def exception(self) -> BaseException | None:
        """Its error, if any."""
        self.poll()
        return self._error

    def source_rank(self) -> int:
        """The rank that sent a received message."""
        return self._source

    _source_rank = source_rank  # PyTorch has both names

    def result(self) -> list[Any]:
        """The tensors that were written; waits for them."""
        self.wait()
        return self._result

    def get_future(self) -> Future[list[Any]]:
        """A future of the tensors that are written."""
        with LOCK:
            if self._future is None:
                self._future = Future()
                if self._done:
                    self._settle(self._future)
        return self._future

    def _settle(self, future: Future[Any]) -> None:
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._result)

    def detach(self, moved: bool = True) -> Work:
        """Continue without waiting; the thread moves it on, unless something is about to wait for it."""
        if moved and not self._done:
            _MOVER.add(self)
        if self.observed is not None:
            self.observed.called(is_async=True)
        return self

    def finish(self) -> None:
        """Wait, for a call that returns when it is over."""
        try:
            self.wait()
        finally:
            if self.observed is not None:
                self.observed.called(is_async=False)


class _Mover:
    """The thread that moves works that nothing waits for."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, work: Work) -> None:
        """Move this work from now on."""
        with self._wake:
            self._works.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mindtorch-mpi", daemon=True)
                self._thread.start()
            self._wake.notify()

    def _run(self) -> None:
        look = 0.0
        while True:
            with self._wake:
                self._works = [work for work in self._works if not work._done]
                works = list(self._works)
                if not works:
                    self._wake.wait()
                    continue
            # A waiting thread moves a work faster than this thread, which would only take the lock from it.
            time.sleep(_MOVE_SECONDS)
            works = [work for work in works if not work._waiters]
            for work in works:
                work.poll()
            now = time.monotonic()
            if now > look:
                look = now + _LOOK_SECONDS
                for work in works:
                    if not work._done:
                        work.check()

    def after_fork(self) -> None:
        """A child has neither the thread nor the works."""
        self.__init__()  # type: ignore[misc]


_MOVER = _Mover()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_MOVER.after_fork)
