"""The folder of a job: small files by which a launcher and the watchers of its ranks know how far each rank is.

MPI itself waits for ever for a rank that never comes, deep inside its own calls. So who watches a rank from outside has
to see that it waits in vain, and for whom.

    started      a dot from each process that the launcher has started
    N.joining    rank N waits for the others in init_process_group; holds its timeout in seconds
    N.joined     it is through
    N.exit       it has ended: process id and exit code

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
            file.write(text)  # without the folder, the launcher is gone


def exit_path(folder: str, rank: int) -> str:
    """Where a rank's process id and exit code are, once it has ended."""
    return os.path.join(folder, f"{rank}.exit")


def say_started() -> None:
    """The launcher did start a process."""
    _write("started", ".", "a")


def was_started(folder: str) -> bool:
    """Whether the launcher has started a process."""
    return os.path.exists(os.path.join(folder, "started"))


def say_joining(rank: int, seconds: float) -> None:
    """This rank begins to wait for the others, for as long at most."""
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
    """Who of the others has ended without coming through init_process_group, and what to say of those who are late."""
    others = [one for one in range(size) if one != rank]
    gone = [one for one in others if _has(one, "exit") and not _has(one, "joined")]
    late = [str(one) for one in others if not _has(one, "joining") and one not in gone]
    return gone, f"; ranks that have not come: {', '.join(late)}" if late else ""


def never_came(rank: int, size: int) -> str | None:
    """Which other rank has ended and never came through init_process_group; None if there is none."""
    gone, late = _others(rank, size)
    if not gone or FOLDER not in os.environ:
        return None
    # Who had come may only have ended because another never did.
    culprit = min(gone, key=lambda one: _has(one, "joining"))
    return f"rank {culprit} has ended and never came through init_process_group{late}"


def in_vain(rank: int, size: int) -> str | None:
    """Why a rank will wait for ever in init_process_group; None if it does not."""
    if FOLDER not in os.environ or _has(rank, "joined"):
        return None
    if not _has(rank, "joining"):
        # Others have waited for this one, and gave up. Who ended without wanting to meet may never have wanted to.
        gave_up = any(_has(one, "joining") for one in _others(rank, size)[0])
        return never_came(rank, size) if gave_up else None
    path = os.path.join(os.environ[FOLDER], f"{rank}.joining")
    with contextlib.suppress(OSError, ValueError):  # it is about to be written
        with open(path) as file:
            seconds = float(file.read())
        late = _others(rank, size)[1]
        if late and time.time() - os.stat(path).st_mtime > seconds:
            return f"init_process_group timed out after {seconds:g} s{late}"
    return never_came(rank, size)
