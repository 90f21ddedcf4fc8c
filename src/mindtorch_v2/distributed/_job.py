"""The folder of a job: small files from which a launcher and the watchers of its ranks know how far each rank is.

MPI itself waits forever for a rank that never comes, deep inside its own calls. So the process that watches a rank from
outside must notice that it waits in vain, and for which rank.

started      a dot from each process that the launcher has started
N.joining    rank N waits for the others in init_process_group; holds its timeout in seconds
N.joined     rank N has left init_process_group
N.exit       rank N has ended: process id and exit code

Without a folder (a plain `mpiexec`) nothing is written and nothing is known.
"""

from __future__ import annotations

import contextlib
import os
import time

__all__ = ["FOLDER", "exit_path", "in_vain", "never_came", "say_ended", "say_joined", "say_joining", "say_started",
           "was_started"]

FOLDER = "MINDTORCH_JOB"  # the environment variable that names it


def _write(name: str, text: str = "", mode: str = "w") -> None:
    folder = os.environ.get(FOLDER)
    if folder:
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), mode) as file:
            file.write(text)  # if the folder is gone, so is the launcher


def exit_path(folder: str, rank: int) -> str:
    """The file with a rank's process id and exit code, once it has ended."""
    return os.path.join(folder, f"{rank}.exit")


def say_started() -> None:
    """The launcher did start a process."""
    _write("started", ".", "a")


def was_started(folder: str) -> bool:
    """Whether the launcher has started a process."""
    return os.path.exists(os.path.join(folder, "started"))


def say_joining(rank: int, seconds: float) -> None:
    """This rank begins to wait for the others, at most this long."""
    _write(f"{rank}.joining", str(seconds))


def say_joined(rank: int) -> None:
    """All ranks have come."""
    _write(f"{rank}.joined")


def say_ended(rank: int, pid: int, code: int) -> None:
    """A rank's process has ended."""
    _write(f"{rank}.exit", f"{pid} {code}")


def _has(rank: int, what: str) -> bool:
    return os.path.exists(os.path.join(os.environ.get(FOLDER, ""), f"{rank}.{what}"))


def _others(rank: int, size: int) -> tuple[list[int], str]:
    """The other ranks that ended without leaving init_process_group, and a text about those that are late."""
    others = [one for one in range(size) if one != rank]
    gone = [one for one in others if _has(one, "exit") and not _has(one, "joined")]
    late = [str(one) for one in others if not _has(one, "joining") and one not in gone]
    return gone, f"; ranks that have not come: {', '.join(late)}" if late else ""


def never_came(rank: int, size: int) -> str | None:
    """The other rank that has ended and never left init_process_group; None if there is none."""
    gone, late = _others(rank, size)
    if not gone or FOLDER not in os.environ:
        return None
    # A rank that came may have ended only because another never did.
    culprit = min(gone, key=lambda one: _has(one, "joining"))
    return f"rank {culprit} has ended and never came through init_process_group{late}"


def in_vain(rank: int, size: int) -> str | None:
    """Why a rank will wait forever in init_process_group; None if it will not."""
    if FOLDER not in os.environ or _has(rank, "joined"):
        return None
    if not _has(rank, "joining"):
        # Others have waited for this one and gave up. A rank that ended without joining may never have wanted to join.
        gave_up = any(_has(one, "joining") for one in _others(rank, size)[0])
        return never_came(rank, size) if gave_up else None
    path = os.path.join(os.environ[FOLDER], f"{rank}.joining")
    with contextlib.suppress(OSError, ValueError):  # the file is about to be written
        with open(path) as file:
            seconds = float(file.read())
        late = _others(rank, size)[1]
        if late and time.time() - os.stat(path).st_mtime > seconds:
            return f"init_process_group timed out after {seconds:g} s{late}"
    return never_came(rank, size)
