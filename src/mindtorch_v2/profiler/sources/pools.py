"""Makes workers of process pools take part in recordings, as a loader's workers do.

A pool of the standard library (`ProcessPoolExecutor`, `multiprocessing.Pool`) does not announce that it starts a
worker. So while a recording runs or a schedule will begin one, and only then, this module replaces `start` and
`terminate` of multiprocessing's processes. Our `start` gives a pool's worker a channel and passes other processes on
unchanged. Our `terminate`, which ends a `Pool`, first collects what the worker recorded.

Nobody reads a worker's pipe while its pool waits for it to end. So the worker writes its recording to a file in a
directory of the channel's, and sends only a notice through the pipe, which has room for that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar

from . import processes
from .reporting import Reporter

# The functions of the standard library's workers, by module and name, so that an unused pool need not be imported.
LABELS = {
    ("concurrent.futures.process", "_process_worker"): "ProcessPoolExecutor worker",
    ("multiprocessing.pool", "worker"): "Pool worker",
}
# Methods of this class are replaced, which its type does not provide for.
Processes: Any = BaseProcess


class Watch:
    """The replaced methods, and the workers that were seen."""

    installed = False
    # The originals. Kept after the removal, because another thread may still be in one of ours.
    start: Callable[[Any], None] = staticmethod(Processes.start)
    terminate: Callable[[Any], None] = staticmethod(Processes.terminate)
    # A channel lives as long as its process, and as long as a recording waits for its events.
    channels: ClassVar[weakref.WeakKeyDictionary[BaseProcess, processes.Channel]] = weakref.WeakKeyDictionary()
    # A worker's number in its pool, which is identified by the queue that its workers share.
    numbers: ClassVar[weakref.WeakKeyDictionary[Any, int]] = weakref.WeakKeyDictionary()


def take_part(target: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any],
              profiler: tuple[Any, Any, dict[int, Any], str]) -> None:
    """In a worker: do the pool's work, and record it."""
    reporter = Reporter(*profiler)
    try:
        target(*arguments, **keywords)
    finally:
        reporter.finish()


def install() -> None:
    """Children are wanted: look at each process that is started."""
    if not Watch.installed:
        Watch.start, Watch.terminate = Processes.start, Processes.terminate
        Processes.start, Processes.terminate = _start, _terminate
        Watch.installed = True


def remove() -> None:
    """Children are no longer wanted. If somebody has wrapped our methods, they stay and pass calls on."""
    if Processes.start is _start and Processes.terminate is _terminate:
        Processes.start, Processes.terminate = Watch.start, Watch.terminate
        Watch.installed = False


def forget() -> None:
    """In a forked child: the workers are its parent's."""
    Watch.channels = weakref.WeakKeyDictionary()
    Watch.numbers = weakref.WeakKeyDictionary()
    remove()


def _start(process: Any) -> None:
    """Replaces `BaseProcess.start`."""
    target = getattr(process, "_target", None)
    label = LABELS.get((getattr(target, "__module__", ""), getattr(target, "__qualname__", "")))
    if label is None or not processes.wanted():
        Watch.start(process)
        return
    recordings = processes.under_way()
    try:
        directory = tempfile.mkdtemp(prefix="profiler-")
    except OSError as error:
        warnings.warn(f"a pool's worker is not recorded: no directory for its events ({error})", RuntimeWarning,
                      stacklevel=2)
        Watch.start(process)
        return
    requests, asked = connection.Pipe(duplex=False)
    told, reports = connection.Pipe(duplex=False)
    channel = processes.Channel(f"{label} {_number(process._args[0])}", asked, told, directory=directory)
    weakref.finalize(channel, _remove_directory, directory, os.getpid())
    given = process._target, process._args, process._kwargs
    profiler = requests, reports, recordings, directory
    process._target, process._args, process._kwargs = take_part, (*given, profiler), {}
    try:
        Watch.start(process)
    except BaseException:
        process._target, process._args, process._kwargs = given
        channel.close()
        raise
    finally:
        # Only the worker holds them, so its end closes them; also before the next worker is forked.
        requests.close()
        reports.close()
    channel.pid = process.pid or 0
    Watch.channels[process] = channel
    processes.join(channel, list(recordings))
    # Pools that replace their workers often would use up the system's open files.
    processes.take_what_is_there()


def _terminate(process: Any) -> None:
    """Replaces `BaseProcess.terminate`."""
    channel = Watch.channels.pop(process, None)
    if channel is not None:
        processes.leave([channel], processes.PATIENCE)
    Watch.terminate(process)


def _number(pool: Any) -> int:
    number = Watch.numbers.get(pool, 0)
    Watch.numbers[pool] = number + 1
    return number


def _remove_directory(directory: str, owner: int) -> None:
    """Remove the directory of late files at exit, in the process that made it; other files are removed after
    reading."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


processes.Children.watches.append(processes.WatchFunctions(install, remove, forget))
