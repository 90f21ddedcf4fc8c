"""Runs programs one after the other in one process: starting a process costs more than most of them.

Each program runs as `__main__`, with RESULTS naming a folder of its own; what it prints goes there too. PORTS has a
free port for each, which PyTorch's groups meet at.
"""

import contextlib
import io
import os
import sys
from pathlib import Path

results, rank = Path(os.environ["RESULTS"]), os.environ["RANK"]
if "ON_PYTORCH" in os.environ:
    import torch.distributed as dist

    end = dist.destroy_process_group

    def end_together(*args):
        """PyTorch hangs now and then if a rank ends its group while another still uses it."""
        dist.barrier()
        end(*args)

    dist.destroy_process_group = end_together
programs, ports = sys.argv[1:], os.environ["PORTS"].split()
kept: list[dict] = []  # PyTorch hangs now and then if the models and groups of a program are taken apart
for program, port in zip(programs, ports):
    folder = results / Path(program).stem
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(RESULTS=str(folder), MASTER_PORT=port)
    sys.argv = [program]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            kept.append({"__name__": "__main__", "__file__": program})
            exec(compile(Path(program).read_text(), program, "exec"), kept[-1])
    finally:
        (folder / f"{rank}.txt").write_text(said.getvalue())
if "ON_PYTORCH" in os.environ:
    sys.stderr.flush()
    os._exit(0)  # without taking apart what is left of several groups
