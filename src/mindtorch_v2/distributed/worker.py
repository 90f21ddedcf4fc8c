"""One of the processes that `torchrun` starts: sets PyTorch's variables from MPI's, and runs the program.

The program runs in a child of this process. `mpiexec` ends all ranks as soon as one is killed, so that none could
report whom it waited for or save its recording. It sees only this process, which passes an ordinary exit code to it.
The other ranks notice by themselves (`_peers.py`), except before they have met: then this process notices for them
(`_job.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import signal
import sys
import time

from mtprof.launch.launchers import launched_rank, launched_size, local_rank, local_size, node

from ..__main__ import main
from . import _job
from ._logs import Logs, Pumps
from .run import LOCAL_RANK_MARK

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl
_LOOK_SECONDS = 0.1
_GRACE_SECONDS = 5.0  # for a program that was told to end


def set_variables() -> None:
    """The variables that PyTorch's launcher sets for each process."""
    rank, size = launched_rank() or 0, launched_size() or 1
    here, beside = local_rank(), local_size()
    machine, machines = node()
    os.environ.update({
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank if here is None else here),
        "LOCAL_WORLD_SIZE": str(size if beside is None else beside), "GROUP_RANK": str(machine),
        "GROUP_WORLD_SIZE": str(machines),
        "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(size), "ROLE_NAME": os.environ.get("ROLE_NAME", "default"),
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"})


def watch(child: int) -> int:
    """Wait for the program and pass signals on to it; returns its exit code."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)
    # This is how MPICH's launcher tells the others that a rank has ended; by default that signal would end them too.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    rank = int(os.environ["RANK"])
    code, reason = _wait(child, rank)
    _job.say_ended(rank, child, code)
    if reason is not None:
        print(f"torchrun: rank {rank} (process {child}) was ended: {reason}", file=sys.stderr, flush=True)
        return 1
    if code < 0:
        print(f"torchrun: rank {os.environ['RANK']} (process {child}) was killed by {signal.Signals(-code).name}",
              file=sys.stderr, flush=True)
        return 128 - code
    return code


def _wait(child: int, rank: int) -> tuple[int, str | None]:
    """The program's exit code and, if it was ended here, the reason."""
    size = int(os.environ["WORLD_SIZE"])
    reason: str | None = None
    told = 0.0
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), reason
        if reason is None:
            reason = _job.in_vain(rank, size)
            if reason is not None:
                told = time.monotonic()
                os.kill(child, signal.SIGTERM)
        elif time.monotonic() - told > _GRACE_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def write_whole_lines() -> None:
    """Pass each line to the launcher at once and in one piece.

    The launcher mixes the ranks' output as it comes. Without a buffer, one `print` is several writes, and lines of two
    ranks run into each other. With a large buffer, a killed rank loses its last lines.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if it is closed
            stream.reconfigure(line_buffering=True, write_through=False)


def run_program(arguments: list[str]) -> int:
    """The program, a Python program unless the options say otherwise."""
    told = LOCAL_RANK_MARK.format(local_rank=os.environ["LOCAL_RANK"])
    arguments = [told if one == LOCAL_RANK_MARK else one for one in arguments]
    if arguments[0] == "--no-python":
        try:
            os.execvp(arguments[1], arguments[1:])
        except OSError as error:
            print(f"torchrun: {arguments[1]} cannot be run: {error.strerror}", file=sys.stderr)
            return 127
    return main(arguments)


if __name__ == "__main__":
    _job.say_started()
    write_whole_lines()
    set_variables()
    pumps = Pumps(Logs.of_environment(), int(os.environ["LOCAL_RANK"]))
    if os.environ.pop("MINDTORCH_VIRTUAL_LOCAL_RANK", None):
        os.environ["LOCAL_RANK"] = "0"
    made = os.fork()
    if made:
        pumps.start()
        code = watch(made)
        pumps.finish()
        sys.exit(code)
    os.setpgid(0, 0)  # processes of the program get no signals from the launcher; the watching process passes them on
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    pumps.in_rank()
    sys.exit(run_program(sys.argv[1:]))
