"""Makes the recordings of many ranks from one real recording: `python -m benchmarks.synthetic_ranks FOLDER`.

The real one is of a data-parallel loop that blocks in its all-reduces. It is repeated until it has enough events, and
each rank gets a pace of its own by step. What lies between two all-reduces is stretched by that pace; each all-reduce
begins when the rank gets there and ends when the last rank has come and the data have moved. So the ranks wait for each
other as real ones do, and who is slow is known: `slow` is slower in compute throughout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import mtprof
from mtprof.schema import TABLES
from mtprof.store import arrow
from mtprof.trace import Trace
from mtprof.views.step_summary import STEP_STARTS

PROGRAM = """
import sys
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.ReLU())), nn.Linear(64, 8))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
with torch.profiler.profile(record_shapes=True, with_modules=True) as prof:
    for _ in range(25):
        loss = model(torch.randn(32, 64)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
        optimizer.zero_grad()
        prof.step()
prof.save(f"{sys.argv[1]}/real{dist.get_rank()}.mtp")
"""


def real(folder: str) -> str:
    """Record the loop in two processes; the path of one's recording."""
    script = os.path.join(folder, "loop.py")
    Path(script).write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "mindtorch_v2.distributed.run", "--nproc-per-node", "2", script, folder],
                   check=True, timeout=300)
    return os.path.join(folder, "real0.mtp")


class Base:
    """The real recording, repeated: its events and where its all-reduces begin and end."""

    def __init__(self, trace: Trace, events: int) -> None:
        self.trace = trace
        times = -(-events // len(trace))
        length = trace.end_ns - trace.start_ns
        tables = {}
        talks = len(trace.collectives["row"])
        steps = int(trace.events["step"].max()) + 1
        for name in ("events", "collectives"):
            table, count = trace.tables[name], len(next(iter(trace.tables[name].values())))
            part = np.repeat(np.arange(times), count)
            columns = {}
            for column in TABLES[name]:
                value = np.tile(table[column.name], times)
                if column.refers == "events":
                    value = np.where(value >= 0, value + part * len(trace), -1)
                elif column.clock:
                    value = value - trace.start_ns + part * length
                elif column.name == "number":
                    value = value + part * talks
                elif name == "events" and column.name == "step":
                    value = value + part * steps
                elif name == "events" and column.name == "stack":
                    value = np.full(len(value), -1)
                columns[column.name] = value.astype(column.dtype)
            tables[name] = columns
        # Rows are sorted by thread first, and the repetitions are one after the other.
        events_table = tables["events"]
        order = np.lexsort((-events_table["end_ns"], events_table["start_ns"], events_table["thread"]))
        place = np.append(np.argsort(order), -1).astype(np.int32)  # the last is that of -1
        tables["events"] = {name: column[order] for name, column in events_table.items()}
        tables["events"]["parent"] = place[tables["events"]["parent"]]
        tables["collectives"]["row"] = place[tables["collectives"]["row"]]
        by_row = np.argsort(tables["collectives"]["row"])
        tables["collectives"] = {name: column[by_row] for name, column in tables["collectives"].items()}
        self.tables = tables
        row = tables["collectives"]["row"]
        order = np.argsort(tables["events"]["start_ns"][row])
        self.begin, self.end = (tables["events"][name][row[order]] for name in ("start_ns", "end_ns"))
        self.step = tables["events"]["step"][row[order]]
        self.whole_ns, self.steps = times * length, times * steps
        # Steps are known by what step() noted, counted from the start; the first one begins with the recording.
        starts = np.array([0, *trace.metadata["mindtorch_v2"][STEP_STARTS]])[:steps]
        self.step_starts = np.concatenate([starts + number * length for number in range(times)])


def meetings(base: Base, pace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """When each rank begins each all-reduce, and when it is over for all; `pace` is by rank and step."""
    begins = np.empty((len(pace), len(base.begin)), np.int64)
    over, before, transfer = 0, 0, int(np.median(base.end - base.begin))
    ends = np.empty(len(base.begin), np.int64)
    for number, (begin, end, step) in enumerate(zip(base.begin.tolist(), base.end.tolist(), base.step.tolist())):
        begins[:, number] = over + (begin - before) * pace[:, min(step, pace.shape[1] - 1)]
        over = ends[number] = int(begins[:, number].max()) + transfer
        before = end
    return begins, ends


def make(folder: str, recording: str, ranks: int, events: int, slow: int = 1, seed: int = 0) -> int:
    """Write the files; how many events each has."""
    os.makedirs(folder, exist_ok=True)
    base = Base(mtprof.load(recording).trace, events)
    choose = np.random.default_rng(seed)
    pace = choose.lognormal(0, 0.05, (ranks, base.steps + 1))
    pace[slow] *= 1.4
    begins, ends = meetings(base, pace)
    old = np.stack([base.begin, base.end], axis=1).reshape(-1)
    for rank in range(ranks):
        new = np.stack([begins[rank], ends], axis=1).reshape(-1)
        known = np.concatenate(([0], old, [base.whole_ns])), np.concatenate(
            ([0], new, [new[-1] + base.whole_ns - old[-1]]))

        def moved(times: np.ndarray, known: tuple[np.ndarray, np.ndarray] = known) -> np.ndarray:
            return np.interp(times, *known).astype(np.int64)

        table = base.tables["events"]
        columns = {**table, "start_ns": moved(table["start_ns"]), "end_ns": moved(table["end_ns"])}
        talks = {**base.tables["collectives"], "rank": np.full(len(base.begin), rank, np.int32),
                 "group_size": np.full(len(base.begin), ranks, np.int32)}
        metadata = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks},
                    "rank_clock": {"run": f"synthetic{seed}", "reference_rank": 0, "time_ns": 0, "offset_ns": 0,
                                   "error_ns": 2000},
                    "mindtorch_v2": {STEP_STARTS: moved(base.step_starts)[1:].tolist()}}
        made = replace(base.trace, tables={"events": columns, "collectives": talks}, metadata=metadata, start_ns=0,
                       end_ns=int(columns["end_ns"].max()), epoch_ns=1_790_000_000_000_000_000)
        arrow.save(made, os.path.join(folder, f"rank{rank:05}.mtp"))
    return len(base.tables["events"]["name"])


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="synthetic_ranks", description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--events", type=int, default=100_000, help="of each rank, at least")
    parser.add_argument("--slow", type=int, default=1, help="the rank that is slower")
    parser.add_argument("--recording", help="a real recording to make them from; by default one is recorded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        count = make(options.folder, options.recording or real(scratch), options.ranks, options.events, options.slow)
    print(f"{options.ranks} files of {count:,} events in {options.folder}")


if __name__ == "__main__":
    main()
