"""Which of the other ranks on this machine are alive, and how far each one is.

The ranks of a machine share a small board with one row per rank: its process id, whether it has left, and the number of
collectives it has begun. A rank reads the others' rows without their help, even if they were killed, hang or have left.
A wait looks at the board now and then, and raises an error that names the rank instead of waiting forever. For ranks on
other machines only the timeout helps.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from typing import Any

import numpy as np

from ._mpi import LOCK, mpi

__all__ = ["Board", "abandon", "board"]

_PID, _LEFT, _BEGUN, _COLUMNS = 0, 1, 2, 3
_LEAVING_SECONDS = 10.0


class Board:
    """The shared rows of the ranks on this machine."""

    def __init__(self) -> None:
        MPI = mpi()
        world = MPI.COMM_WORLD
        self.rank = world.Get_rank()
        self.size = world.Get_size()
        self.local = world.Split_type(MPI.COMM_TYPE_SHARED)
        bytes_of_row = _COLUMNS * 8
        self._window = MPI.Win.Allocate_shared(bytes_of_row, 8, comm=self.local)
        self.rows: dict[int, np.ndarray] = {}
        for place, rank in enumerate(self.local.allgather(self.rank)):
            memory, _ = self._window.Shared_query(place)
            self.rows[rank] = np.frombuffer(memory, np.int64, _COLUMNS)
        self.own = self.rows[self.rank]
        self.own[:] = os.getpid(), 0, 0
        self.local.Barrier()
        self.broken = False
        self.end = world.Dup()  # for the ranks' last meeting
        atexit.register(self.leave)

    def begin(self) -> None:
        """This rank begins a collective."""
        self.own[_BEGUN] += 1

    def gone(self, ranks: Any) -> str | None:
        """The fate of the first rank that will not answer any more, None if all are there. A killed rank cannot have
        waited in vain for another, so it comes before ranks that left."""
        left: list[tuple[int, int]] = []
        for rank in ranks:
            row = self.rows.get(rank)
            if row is None or rank == self.rank:
                continue
            if row[_LEFT]:
                left.append((int(row[_LEFT]), rank))
            elif not _alive(int(row[_PID])):
                return f"rank {rank} (process {row[_PID]}) was killed or has crashed"
        if not left:
            return None
        rank = min(left)[1]
        return f"rank {rank} (process {self.rows[rank][_PID]}) has ended its program"

    def behind(self, ranks: Any) -> list[int]:
        """The ranks on this machine that have begun fewer collectives than this one."""
        return [rank for rank in ranks if rank in self.rows and self.rows[rank][_BEGUN] < self.own[_BEGUN]]

    def leave(self) -> None:
        """At the end of the program: finalize MPI if all ranks get here; otherwise do without."""
        MPI = mpi()
        self.own[_LEFT] = time.monotonic_ns()
        failed = self.broken or getattr(sys, "last_value", None) is not None
        if failed or MPI.Is_finalized():
            return
        with LOCK:
            meeting = self.end.Ibarrier()
            limit = time.monotonic() + _LEAVING_SECONDS
            while not meeting.Test():
                if time.monotonic() > limit or any(not _alive(int(row[_PID])) for row in self.rows.values()):
                    return
                time.sleep(0.0005)
            MPI.Finalize()


def abandon() -> None:
    """This rank has failed and leaves without meeting the others."""
    for one in _BOARD:
        one.broken = True


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A killed child stays in the process table until its parent asks for it.
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    return True


_BOARD: list[Board] = []


def board() -> Board:
    """This process's board, made on first use; all ranks must use it."""
    if not _BOARD:
        _BOARD.append(Board())
    return _BOARD[0]
