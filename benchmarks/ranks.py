"""Many processes: collectives beside mpi4py's own, a data-parallel step beside PyTorch's gloo, and the analysis of many
ranks beside Holistic Trace Analysis.

`python -m benchmarks ranks`; RANKS says how many synthetic ranks are made (200), HTA_PYTHON names a Python with
HolisticTraceAnalysis. It needs the extra `distributed`.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import synthetic_ranks

COLLECTIVE = """
import json, os, sys
from time import perf_counter
import numpy as np
import torch, torch.distributed as dist
from mpi4py import MPI
dist.init_process_group("mpi")
size = 25_000_000
x, raw, best = torch.ones(size), np.ones(size, np.float32), {}
for _ in range(7):
    for name, call in (("ours", lambda: dist.all_reduce(x)),
                       ("mpi4py", lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, raw))):
        MPI.COMM_WORLD.Barrier()
        began = perf_counter()
        call()
        best[name] = min(best.get(name, 1e9), perf_counter() - began)
if dist.get_rank() == 0:
    print(json.dumps(best))
dist.barrier()
"""

STEP = """
import json, os, sys
from time import perf_counter
import torch, torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.ln_1, self.ln_2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        B, T, C = x.shape
        parts = self.qkv(self.ln_1(x)).split(C, 2)
        q, k, v = (p.view(B, T, self.heads, C // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)
        x = x + self.out(y)
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab=512, width=128, layers=4, length=64):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.head = nn.Linear(width, vocab)

    def forward(self, tokens):
        return self.head(self.blocks(self.wte(tokens) + self.wpe.weight))


which = sys.argv[1]
if which == "mlp":
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    loss_of = lambda: F.cross_entropy(model(x), y)
else:
    model = GPT()
    x = torch.randint(0, 512, (4, 64))
    loss_of = lambda: F.cross_entropy(model(x).flatten(0, 1), x.flatten())
model = DDP(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
best = 1e9
for number in range(int(sys.argv[2])):
    dist.barrier()
    began = perf_counter()
    loss_of().backward()
    optimizer.step()
    optimizer.zero_grad()
    best = min(best, perf_counter() - began)
if dist.get_rank() == 0:
    print(json.dumps(best))
dist.barrier()
"""

OURS = "import sys, mtprof\nranks = mtprof.load(sys.argv[1])\nranks.by_rank(), ranks.steps(), ranks.overlap()\n"
THEIRS = "import os, sys\nfrom hta.trace_analysis import TraceAnalysis\n" \
         "if __name__ == '__main__':\n" \
         "    names = sorted(os.listdir(sys.argv[1]))\n" \
         "    TraceAnalysis(trace_files=dict(enumerate(names)), trace_dir=sys.argv[1])\n"


def run() -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as scratch:
        _collective(scratch)
        for which, steps in (("mlp", 60), ("gpt", 25)):
            _step(scratch, which, steps)
        real = synthetic_ranks.real(scratch)
        _many(scratch, real, int(os.environ.get("RANKS", "200")))
        _beside_hta(scratch, real)


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "PYTHONPATH")}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def _ours(script: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "mindtorch_v2.distributed.run", "--nproc-per-node", "2", script, *arguments]
    sources = str(Path(__file__).parents[1] / "src")
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600,
                          env=_environment(PYTHONPATH=sources)).stdout


def _gloo(script: str, *arguments: str) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = _environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo")
    started = [subprocess.Popen([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True,
                                env={**shared, "RANK": str(rank)}) for rank in range(2)]
    return "".join(process.communicate(timeout=600)[0] for process in started)


def _collective(scratch: str) -> None:
    script = os.path.join(scratch, "collective.py")
    Path(script).write_text(COLLECTIVE)
    best = json.loads(_ours(script))
    print(f"ranks: all_reduce of 100 MB on two ranks {1000 * best['ours']:.0f} ms, mpi4py "
          f"{1000 * best['mpi4py']:.0f} ms: {best['ours'] / best['mpi4py']:.2f}")


def _step(scratch: str, which: str, steps: int) -> None:
    """The two runtimes take turns; the best of each counts."""
    script = os.path.join(scratch, "step.py")
    Path(script).write_text(STEP)
    ours, theirs = 1e9, 1e9
    for _ in range(3):
        ours = min(ours, json.loads(_ours(script, which, str(steps))))
        theirs = min(theirs, json.loads(_gloo(script, which, str(steps))))
    print(f"ranks: data-parallel step of the {which} on two ranks {1000 * ours:.2f} ms, PyTorch with gloo "
          f"{1000 * theirs:.2f} ms: {ours / theirs:.2f}")


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in thread.read_text().split():
            yield from _tree(int(child))


def _resident_bytes(pid: int) -> int:
    """Of a process and all below it, memory-mapped files included."""
    total = 0
    try:
        for one in _tree(pid):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        pass  # one of them has just ended
    return total


def _many(scratch: str, real: str, ranks: int) -> None:
    folder = os.path.join(scratch, "many")
    events = synthetic_ranks.make(folder, real, ranks, 100_000)
    names = sorted(os.listdir(folder))
    for part in (ranks // 4, ranks // 2, ranks):
        chosen = os.path.join(scratch, f"part{part}")
        os.mkdir(chosen)
        for name in names[:part]:
            os.link(os.path.join(folder, name), os.path.join(chosen, name))
        wall, cpu, peak = _measured([sys.executable, "-m", "mtprof", "ranks", "--quiet", "--workers", "2", chosen])
        print(f"ranks: {part} ranks of {events:,} events: {wall:.1f} s, {cpu:.1f} s of CPU time, {peak:.2f} GiB")


def _measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of CPU time and the most memory in GiB, of a command and all processes that it starts."""
    before, began, peak = os.times(), time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        peak = max(peak, _resident_bytes(process.pid))
        time.sleep(0.02)
    errors = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"{command[:3]} failed: {errors[-2000:]}")
    used = os.times()
    cpu = used.children_user + used.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, cpu, peak / 2**30


def _beside_hta(scratch: str, real: str) -> None:
    """HTA reads the files and no more: its analyses want work on a GPU, which recordings of a CPU do not have."""
    python = os.environ.get("HTA_PYTHON")
    if python is None:
        print("ranks: beside HTA: skipped; HTA_PYTHON should name a Python with HolisticTraceAnalysis")
        return
    import mtprof

    own, chrome = os.path.join(scratch, "own"), os.path.join(scratch, "chrome")
    events = synthetic_ranks.make(own, real, 8, 20_000)
    os.mkdir(chrome)
    for name in sorted(os.listdir(own)):
        mtprof.load(os.path.join(own, name)).export_chrome_trace(os.path.join(chrome, f"{name[:-4]}.json"))
    (_, ours, ours_gib), (_, theirs, theirs_gib) = (
        _measured([who, "-W", "ignore", "-c", program, chrome]) for who, program in ((sys.executable, OURS),
                                                                                     (python, THEIRS)))
    print(f"ranks: eight ranks of {events:,} events in Kineto's files: {ours:.1f} s of CPU time and {ours_gib:.2f} "
          f"GiB, HTA {theirs:.1f} s and {theirs_gib:.2f} GiB: {ours / theirs:.2f} and {ours_gib / theirs_gib:.2f}")
