"""Tables about device work in torch_npu's form: kernels, operators, steps and calls.

Each function returns rows as dictionaries whose keys are the column titles, in order. Times are microseconds.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..schema import Kind
from ..trace import Trace

Row = dict[str, Any]
DEVICE_WORK = (Kind.KERNEL, Kind.COPY, Kind.FILL)


def _us(ns: Any) -> float:
    return round(float(ns) / 1000, 3)


def _device_rows(trace: Trace) -> np.ndarray:
    events = trace.events
    rows = np.flatnonzero(np.isin(events["kind"], DEVICE_WORK) & (events["device"] != 0))
    return rows[np.argsort(events["start_ns"][rows], kind="stable")]


def operator_of(name: str) -> str:
    """The operator in a kernel's name.

    >>> operator_of("aclnnAdd_AddAiCore_Add"), operator_of("MemcpyHtoD")
    ('Add', 'MemcpyHtoD')
    """
    parts = name.split("_")
    return parts[-1] if len(parts) > 1 and parts[0].startswith("aclnn") else name


def kernel_details(trace: Trace) -> list[Row]:
    """Every piece of device work: its start, its length, and how long its stream had waited for it."""
    events = trace.events
    ended: dict[int, int] = {}
    found = []
    for row in _device_rows(trace).tolist():
        thread, start, end = (int(events[key][row]) for key in ("thread", "start_ns", "end_ns"))
        name = trace.names[events["name"][row]]
        found.append({
            "Device_id": int(events["device_index"][row]), "Name": name, "Type": operator_of(name),
            "Accelerator Core": "N/A" if events["kind"][row] != Kind.KERNEL else core_of(name),
            "Start Time(us)": _us(start - trace.start_ns), "Duration(us)": _us(end - start),
            "Wait Time(us)": _us(max(start - ended.get(thread, start), 0)),
            "Stream": trace.threads[thread].tid, "Step": int(events["step"][row]),
        })
        ended[thread] = max(ended.get(thread, end), end)
    return found


def core_of(name: str) -> str:
    """The cores that ran a kernel, as far as its name shows."""
    lowered = name.lower()
    if any(word in lowered for word in ("matmul", "addmm", "conv", "_mm", "bmm", "attention", "mv")):
        return "AI_CORE"
    return "AI_VECTOR_CORE"


def op_statistic(trace: Trace) -> list[Row]:
    """Kernels by operator: count, total, minimum, maximum and average time, and the share of all."""
    groups: dict[tuple[int, str, str], list[float]] = {}
    for row in kernel_details(trace):
        if row["Accelerator Core"] != "N/A":
            groups.setdefault((row["Device_id"], row["Type"], row["Accelerator Core"]), []).append(row["Duration(us)"])
    total = sum(sum(times) for times in groups.values())
    rows = [{
        "Device_id": device, "OP Type": kind, "Core Type": core, "Count": len(times),
        "Total Time(us)": round(sum(times), 3), "Min Time(us)": min(times),
        "Avg Time(us)": round(sum(times) / len(times), 3), "Max Time(us)": max(times),
        "Ratio(%)": round(100 * sum(times) / total, 3) if total else 0.0,
    } for (device, kind, core), times in groups.items()]
    return sorted(rows, key=lambda row: (-row["Total Time(us)"], row["OP Type"]))


def step_trace_time(trace: Trace) -> list[Row]:
    """Per step and device: time of kernels, time of copies outside kernels, and idle time."""
    events = trace.events
    rows = _device_rows(trace)
    found = []
    for device in np.unique(events["device_index"][rows]).tolist():
        mine = rows[events["device_index"][rows] == device]
        for step in np.unique(events["step"][mine]).tolist():
            part = mine[events["step"][mine] == step]
            start, end = events["start_ns"][part], events["end_ns"][part]
            kernels = events["kind"][part] == Kind.KERNEL
            busy = covered(start, end)
            computing = covered(start[kernels], end[kernels])
            span = int(end.max() - start.min())
            found.append({
                "Device_id": device, "Step": step, "Computing": _us(computing),
                "Communication(Not Overlapped)": 0.0, "Overlapped": 0.0, "Communication": 0.0,
                "Free": _us(span - busy), "Stage": _us(span), "Bubble": 0.0,
                "Copy(Not Overlapped)": _us(busy - computing),
            })
    return found


def covered(start: np.ndarray, end: np.ndarray) -> int:
    """The length of the union of intervals.

    >>> covered(np.array([0, 5, 20]), np.array([10, 8, 30]))
    20
    """
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    before = np.concatenate(([start[0]], end[:-1]))
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def api_statistic(trace: Trace) -> list[Row]:
    """The host's calls of the device's runtime, by name."""
    events = trace.events
    rows = np.flatnonzero(events["kind"] == Kind.LAUNCH)
    groups: dict[int, list[int]] = {}
    for name, time in zip(events["name"][rows].tolist(), (events["end_ns"] - events["start_ns"])[rows].tolist(),
                          strict=True):
        groups.setdefault(name, []).append(time)
    found = [{"Device_id": "host", "Level": "acl", "API Name": trace.names[name], "Time(us)": _us(sum(times)),
              "Count": len(times), "Avg(us)": _us(sum(times) / len(times)), "Min(us)": _us(min(times)),
              "Max(us)": _us(max(times)), "Variance": round(float(np.var(np.array(times) / 1000)), 3)}
             for name, times in groups.items()]
    return sorted(found, key=lambda row: (-row["Time(us)"], row["API Name"]))


def memory_record(trace: Trace) -> list[Row]:
    """The memory of devices over time."""
    if not trace.has("memory"):
        return []
    memory = trace.memory
    return [{"Component": "PTA", "Timestamp(us)": _us(time - trace.start_ns),
             "Total Allocated(MB)": round(total / 2**20, 6), "Total Reserved(MB)": round(reserved / 2**20, 6),
             "Device Type": f"NPU:{index}"}
            for time, total, reserved, index, kind in zip(
                *[memory[key].tolist() for key in ("time_ns", "total_bytes", "reserved_bytes", "device_index",
                                                   "device")], strict=True) if kind != 0]


TABLES: dict[str, Callable[[Trace], list[Row]]] = {
    "kernel_details": kernel_details, "op_statistic": op_statistic, "step_trace_time": step_trace_time,
    "api_statistic": api_statistic, "memory_record": memory_record,
}


def write_csv(rows: Sequence[Row], path: Path | str) -> None:
    """Write rows with a line of titles; without rows the file is empty."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        if rows:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def write_all(trace: Trace, folder: Path | str) -> list[Path]:
    """Write all tables into a directory, as files of their names."""
    made = []
    for name, table in TABLES.items():
        path = Path(folder) / f"{name}.csv"
        write_csv(table(trace), path)
        made.append(path)
    return made
