"""Ranks that `torch.multiprocessing.spawn` starts: `mpiexec` starts the processes, so they can communicate over MPI.

A file passes the function and its arguments. Each rank also runs this module.
"""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from mtprof.launch.launchers import launched_rank, launched_size

from .._spawning import error_path, failure, run
from . import _job
from ._mpi import installed
from ._peers import abandon
from .run import WORKER, dialect, find_launcher

__all__ = ["RanksContext", "start"]

_LOOK_SECONDS = 0.02
_GRACE_SECONDS = 5.0  # after a failure: time for others to end with an error that names the rank


def start(fn: Callable[..., Any], args: tuple[Any, ...], count: int) -> RanksContext | None:
    """Start the ranks. None where MPI cannot: it is missing, this process is one of several ranks already, or an
    argument can only be inherited, as locks and queues are."""
    mpiexec = find_launcher(None)
    if mpiexec is None or not installed() or (launched_size() or 1) > 1:
        return None
    try:
        job = bytes(ForkingPickler.dumps((fn, args)))
    except (RuntimeError, TypeError, AttributeError, pickle.PicklingError):
        return None
    preparation = multiprocessing.spawn.get_preparation_data("rank")
    preparation.pop("authkey")
    folder = tempfile.TemporaryDirectory(prefix="mindtorch-spawn-")
    with open(os.path.join(folder.name, "job"), "wb") as file:
        pickle.dump(preparation, file)
        file.write(job)
    command = [mpiexec, *dialect(mpiexec), "-n", str(count), sys.executable, "-m", WORKER, "-m", __name__,
               folder.name]
    return RanksContext(subprocess.Popen(command, env={**os.environ, _job.FOLDER: folder.name}), count, folder)


class RanksContext:
    """Ranks under a launcher, with the interface of `ProcessContext`."""

    def __init__(self, launcher: subprocess.Popen[bytes], count: int,
                 folder: tempfile.TemporaryDirectory[str]) -> None:
        self._launcher, self._count, self._folder = launcher, count, folder

    def pids(self) -> list[int]:
        """The launcher's id: the ranks are its children."""
        return [self._launcher.pid]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one fails, which raises, or all have ended; returns whether all have when the time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._launcher.poll() is None:
            failed = self._failed()
            if failed is not None:
                self._end_others(grace_period)
                raise failed
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(_LOOK_SECONDS)
        failed = self._failed()
        if failed is not None:
            raise failed
        if self._launcher.returncode:
            raise RuntimeError(f"mpiexec ended with code {self._launcher.returncode}; its message is above")
        return True

    def _failed(self) -> Exception | None:
        """The first failure, by the times of the files that ranks leave when they raise and when they end."""
        found = []
        for number in range(self._count):
            path, raised = _job.exit_path(self._folder.name, number), error_path(self._folder.name, number)
            with contextlib.suppress(OSError, ValueError):  # it still runs, or is about to write the file
                with open(path) as file:
                    pid, code = map(int, file.read().split())
                if code:
                    first = raised if os.path.exists(raised) else path
                    found.append((os.stat(first).st_mtime_ns, number, pid, code))
        if not found:
            return None
        _, number, pid, code = min(found)
        return failure(number, pid, code, error_path(self._folder.name, number))

    def _end_others(self, grace_period: float | None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._launcher.wait(_GRACE_SECONDS if grace_period is None else grace_period)
        if self._launcher.poll() is None:
            self._launcher.terminate()
            self._launcher.wait()


def main(folder: str) -> None:
    """One rank."""
    with open(os.path.join(folder, "job"), "rb") as file:
        multiprocessing.spawn.prepare(pickle.load(file))
        fn, args = pickle.load(file)
    rank = launched_rank() or 0
    try:
        run(fn, rank, args, error_path(folder, rank))
    except SystemExit as end:
        if end.code:
            abandon()
        raise


if __name__ == "__main__":
    main(sys.argv[1])
