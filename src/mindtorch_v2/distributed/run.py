"""`torchrun`: start a program in several processes with MPI.

    python -m mindtorch_v2.distributed.run --nproc-per-node 2 script.py args

It runs `mpiexec`, which starts the processes; each finds the variables that PyTorch's launcher sets (`RANK`,
`LOCAL_RANK`, `WORLD_SIZE`, …). For several machines, start the program with `mpiexec` and a list of hosts, or with
Slurm's `srun`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from typing import Any

from . import _job
from ._logs import Logs

__all__ = ["dialect", "exit_with", "find_launcher", "get_args_parser", "main", "run"]

LOCAL_RANK_MARK = "--local-rank={local_rank}"  # what a rank replaces
WORKER = "mindtorch_v2.distributed.worker"  # this name, even if the program calls the package torch


def get_args_parser() -> argparse.ArgumentParser:
    """The options of PyTorch's launcher that have a meaning here."""
    parser = argparse.ArgumentParser(prog="torchrun", description="Start a program in several processes with MPI.")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", type=str, default="1",
                        help="processes to start; 'cpu' or 'auto' for one per processor")
    parser.add_argument("--nnodes", type=str, default="1", help="machines; for more than one use mpiexec")
    parser.add_argument("--standalone", action="store_true", help="has no effect: MPI brings the ranks together")
    parser.add_argument("--role", default="default", help="the value of ROLE_NAME")
    parser.add_argument("--log-dir", "--log_dir", default=None, help="folder for files with the ranks' output")
    parser.add_argument("-r", "--redirects", default="0", help="output to files: 1 stdout, 2 stderr, 3 both; or by "
                                                               "local rank, such as 0:1,1:3")
    parser.add_argument("-t", "--tee", default="0", help="the same, for output to files and to the terminal")
    parser.add_argument("--local-ranks-filter", "--local_ranks_filter", default=None,
                        help="the local ranks that write to the terminal, such as 0,1")
    parser.add_argument("--virtual-local-rank", "--virtual_local_rank", action="store_true",
                        help="set LOCAL_RANK to 0 for all")
    parser.add_argument("--run-path", "--run_path", action="store_true", help=argparse.SUPPRESS)
    for name in ("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--max-restarts", "--start-method",
                 "--monitor-interval", "--local-addr", "--node-rank", "--event-log-handler", "--shutdown-timeout"):
        parser.add_argument(name, name.replace("-", "_").replace("__", "--", 1), default=None,
                            help=argparse.SUPPRESS)
    parser.add_argument("--master-addr", "--master_addr", default="127.0.0.1", help="the value of MASTER_ADDR")
    parser.add_argument("--master-port", "--master_port", default="29500", help="the value of MASTER_PORT")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as with python -m")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="the program is not a Python program")
    parser.add_argument("--mpiexec", default=None, help="the launcher; by default the one beside this Python, or on "
                                                        "PATH")
    for action in parser._actions:  # as in PyTorch's launcher
        action.default = os.environ.get(f"PET_{action.dest.upper()}", action.default) if action.nargs != 0 \
            else action.default
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _count(text: str) -> int:
    if text in ("cpu", "auto"):
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise SystemExit(f"torchrun: --nproc-per-node should be a number of processes, 'cpu' or 'auto', but is "
                         f"{text!r}")
    return int(text)


def find_launcher(given: str | None) -> str | None:
    """MPI's launcher: the one that was given, the one beside this Python, or the one on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return given or (beside if os.access(beside, os.X_OK) else shutil.which("mpiexec") or shutil.which("mpirun"))


def _launcher(given: str | None) -> str:
    found = find_launcher(given)
    if found is None:
        raise SystemExit("torchrun: no mpiexec found: pip install 'mindtorch-v2[distributed]', or put that of your "
                         "MPI on "
                         "PATH")
    return found


def dialect(mpiexec: str) -> list[str]:
    """Options that differ between MPIs: other ranks continue when one dies, so that they can name it.

    All processes are on this machine, even inside a job of Slurm, whose srun they would otherwise wait for.
    """
    try:
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60).stdout
    except OSError as error:
        raise SystemExit(f"torchrun: {mpiexec} cannot be run: {error}") from error
    if "Open MPI" in version or "OpenRTE" in version or "PRRTE" in version:
        setting = "--mca" if "(Open MPI) 4" in version else "--prtemca"
        return ["--oversubscribe", "--continuous", setting, "plm", "^slurm", setting, "ras", "^slurm",
                *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    if "HYDRA" in version.upper():
        return ["-disable-auto-cleanup", "-launcher", "fork", "-rmk", "user"]
    return []


def run(args: Any, tells_local_rank: bool = False) -> int:
    """Start the program with the options; returns the exit code. Its first argument may be its local rank."""
    if args.nnodes.partition(":")[0] not in ("1", ""):
        raise SystemExit("torchrun: this launcher starts processes on one machine; for several, start the program with "
                         "mpiexec and a list of hosts, or with srun")
    if args.max_restarts not in (None, "0"):
        print("torchrun: --max-restarts has no effect: ranks that fail are not started again", file=sys.stderr)
    mpiexec, count = _launcher(args.mpiexec), _count(str(args.nproc_per_node))
    program = [args.training_script, *([LOCAL_RANK_MARK] if tells_local_rank else []), *args.training_script_args]
    how = ["--no-python"] if args.no_python and not args.run_path else ["-m"] if args.module else []
    program = [sys.executable, "-m", WORKER, *how, *program]
    run_id = args.rdzv_id or uuid.uuid4().hex[:8]
    logs = Logs.chosen(count, run_id, args.log_dir, str(args.redirects), str(args.tee), args.local_ranks_filter,
                       args.role)
    environment = {**os.environ, "MASTER_ADDR": args.master_addr, "MASTER_PORT": str(args.master_port),
                   "LOCAL_WORLD_SIZE": str(count), "TORCHELASTIC_RUN_ID": run_id, "ROLE_NAME": args.role,
                   **logs.variables(), **({"MINDTORCH_VIRTUAL_LOCAL_RANK": "1"} if args.virtual_local_rank else {})}
    environment.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="torchrun-") as folder:
        environment[_job.FOLDER] = folder
        code = _wait([mpiexec, *dialect(mpiexec), "-n", str(count), *program], environment)
        if code and not _job.was_started(folder):
            print(f"torchrun: {os.path.basename(mpiexec)} ended with code {code} before it started a process; its "
                  f"message is above. It needs slots for {count} processes, and must belong to the MPI of mpi4py",
                  file=sys.stderr, flush=True)
    return code


def _wait(command: list[str], environment: dict[str, str]) -> int:
    started = subprocess.Popen(command, env=environment)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda which, _: started.send_signal(which))
    while True:
        try:
            return started.wait()
        except KeyboardInterrupt:
            started.send_signal(signal.SIGINT)


def main(args: list[str] | None = None) -> None:
    """The command."""
    exit_with(run(get_args_parser().parse_args(args)))


def exit_with(code: int) -> None:
    """End with the launcher's exit code, if that is a failure."""
    if code:
        sys.exit(code if code > 0 else 128 - code)


if __name__ == "__main__":
    main()
