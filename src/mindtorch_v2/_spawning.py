"""Processes that run one function: `torch.multiprocessing.spawn`, what it returns and what it raises."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection, get_context
from typing import Any

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "failure", "run",
           "spawn"]


class ProcessException(Exception):
    """A process that `spawn` started has failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    @property
    def pid(self) -> int:
        """The process's id under its old name."""
        return self.error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """Its function raised; the message has the traceback."""


class ProcessExitedException(ProcessException):
    """It was killed, or left by itself."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int,
                 signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def run(fn: Callable[..., Any], number: int, args: tuple[Any, ...], error_path: str) -> None:
    """In the process: call the function; where it raises, leave the traceback in a file."""
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and reports it
    except Exception:
        with open(error_path, "w") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


def failure(number: int, pid: int, exit_code: int, error_path: str) -> ProcessException:
    """The error for a process that ended with this code."""
    if os.path.exists(error_path):
        with open(error_path) as file:
            return ProcessRaisedException(f"\n\n-- Process {number} terminated with the following error:\n"
                                          f"{file.read()}", number, pid)
    if exit_code < 0:
        name = signal.Signals(-exit_code).name
        return ProcessExitedException(f"process {number} terminated with signal {name}", number, pid, exit_code, name)
    return ProcessExitedException(f"process {number} terminated with exit code {exit_code}", number, pid, exit_code)


class ProcessContext:
    """Processes that `spawn(..., join=False)` has started."""

    def __init__(self, processes: list[Any], folder: tempfile.TemporaryDirectory[str]) -> None:
        self.processes = processes
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}
        self._folder = folder

    def pids(self) -> list[int]:
        """Their process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one fails, which raises, or all have ended; returns whether all have when the time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.sentinels:
            ready = connection.wait(list(self.sentinels), None if end is None else max(0.0, end - time.monotonic()))
            if not ready:
                return False
            for sentinel in ready:
                number = self.sentinels.pop(sentinel)
                process = self.processes[number]
                process.join()
                if process.exitcode:
                    self._end_others(grace_period)
                    raise failure(number, process.pid, process.exitcode, error_path(self._folder.name, number))
        return True

    def _end_others(self, grace_period: float | None) -> None:
        """After a failure: the others would wait for it forever."""
        for process in self.processes:
            if grace_period is not None:
                process.join(grace_period)
            if process.is_alive():
                process.terminate()
            process.join()


def error_path(folder: str, number: int) -> str:
    """Where a process leaves its traceback."""
    return os.path.join(folder, f"{number}.error")


def spawn(fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> Any:
    """Run `fn(i, *args)` in `nprocs` processes; with `join`, wait for them and raise if one fails.

    A program that uses `torch.distributed` means ranks, which only a launcher of MPI can start. So it starts them.
    """
    if nprocs > 1 and start_method == "spawn" and "mindtorch_v2.distributed" in sys.modules:
        from .distributed import _spawned

        ranks = _spawned.start(fn, args, nprocs)
        if ranks is not None:
            return _joined(ranks) if join else ranks
    folder = tempfile.TemporaryDirectory(prefix="mindtorch-spawn-")
    context = get_context(start_method)
    processes = [context.Process(target=run, args=(fn, number, args, error_path(folder.name, number)),  # type: ignore[attr-defined]
                                 daemon=daemon) for number in range(nprocs)]
    for process in processes:
        process.start()
    started = ProcessContext(processes, folder)
    return _joined(started) if join else started


def _joined(context: Any) -> None:
    try:
        while not context.join():
            pass
    except BaseException:
        with contextlib.suppress(ProcessException):
            context._end_others(None)
        raise
