"""One of the processes that `torchrun` starts: sets PyTorch's variables from MPI's, and runs the program.

The program runs in a child of this process. `mpiexec` ends all ranks as soon as one is killed, so that none could say
whom it waited for or save what it had recorded. It only sees this process, which tells it by an ordinary exit code. The
other ranks notice by themselves (`_peers.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import sys

from ..__main__ import main
from ._mpi import launched_rank, launched_size, local_rank, local_size

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl


def set_variables() -> None:
    """What PyTorch's launcher puts into the environment of each process."""
    rank, size = launched_rank() or 0, launched_size() or 1
    here, beside = local_rank(), local_size()
    os.environ.update({
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank if here is None else here),
        "LOCAL_WORLD_SIZE": str(size if beside is None else beside), "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
        "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(size), "ROLE_NAME": "default",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"})


def watch(child: int) -> int:
    """Wait for the program and pass signals on to it; its exit code."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)
    # MPICH's launcher tells the others so that a rank has died; by default that signal would end them too.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if exits := os.environ.get("MINDTORCH_EXITS"):  # where somebody wants to know how each rank ended
        with open(os.path.join(exits, f"{os.environ['RANK']}.exit"), "w") as file:
            file.write(f"{child} {code}")
    if code < 0:
        print(f"torchrun: rank {os.environ['RANK']} (process {child}) was killed by {signal.Signals(-code).name}",
              file=sys.stderr, flush=True)
        return 128 - code
    return code


def say_started() -> None:
    """Tell the launcher that its mpiexec did start a process."""
    with contextlib.suppress(OSError), open(os.environ.pop("MINDTORCH_STARTED", os.devnull), "a") as seen:
        seen.write(".")


def write_whole_lines() -> None:
    """Hand each line to the launcher at once and in one piece.

    The launcher mixes what the ranks write as it comes. Unbuffered, one `print` is several writes, and lines of two
    ranks run into each other; buffered, a rank that is killed takes its last lines with it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(line_buffering=True, write_through=False)


if __name__ == "__main__":
    say_started()
    write_whole_lines()
    set_variables()
    made = os.fork()
    if made:
        sys.exit(watch(made))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    sys.exit(main(sys.argv[1:]))
