"""From noted Python calls to events, and from those to the stack of every other event."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

import ml_dtypes
import numpy as np

from ..trace import Kind, ThreadInfo, Trace, TraceBuilder, derived
from .python_calls import CALL_FIELDS, EXIT, CallPiece

# Code that ops are made of. Inside an op it is no part of the user's program.
_KERNEL_FILES = tuple(os.path.join(os.path.dirname(package.__file__), "") for package in (np, ml_dtypes))
_STANDARD_FILES = os.path.join(sysconfig.get_path("stdlib"), "")
_INSTALLED = os.sep + "site-packages" + os.sep  # a directory inside the standard library's


def add_python_calls(build: TraceBuilder, pieces: Sequence[CallPiece], steps_ns: np.ndarray,
                     ops: dict[ThreadInfo, tuple[np.ndarray, np.ndarray]]) -> None:
    """Add the calls as events. `ops` has the start and end times of each thread's ops."""
    lanes = {(info.pid, info.tid): info for info in ops}
    names = CallNames(build)
    for piece in pieces:
        # Both sides name threads; the op's lane wins where a thread was renamed in between.
        info = lanes.get((piece.info.pid, piece.info.tid))
        if info is None and piece.idle:
            continue
        calls = paired(piece)
        code, start, end = calls["call"], calls["start_ns"], calls["end_ns"]
        name, library = names.of(calls["codes"], code)
        if info is not None and library.any():
            kept = ~(library & inside(*ops[info], start))
            name, start, end = name[kept], start[kept], end[kept]
        if len(name):
            build.add_columns({
                "name": name, "kind": np.full(len(name), Kind.PYTHON, np.uint8), "start_ns": start, "end_ns": end,
                "thread": np.full(len(name), build.thread(info or piece.info), np.int32),
                "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            })


def with_stacks(trace: Trace) -> Trace:
    """The trace with a stack for each event that is no Python call."""
    stack, table = derived.stacks(trace.events, trace.names)
    stack.flags.writeable = False
    return replace(trace, events={**trace.events, "stack": stack}, stacks=table)


def inside(start: np.ndarray, end: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Whether each instant lies in one of the intervals, which nest or are apart."""
    if not len(start):
        return np.zeros(len(time), bool)
    order = np.argsort(start, kind="stable")
    latest = np.maximum.accumulate(end[order])
    place = np.searchsorted(start[order], time, "right") - 1
    return (place >= 0) & (latest[np.maximum(place, 0)] >= time)


# -- enter and exit ----------------------------------------------------------------------------------------------------


def paired(piece: CallPiece) -> dict[str, Any]:
    """Calls with start and end: `call` points into `codes`, a list of (code, line or None, instruction)."""
    calls = piece.calls
    count = len(calls) // CALL_FIELDS
    times = np.array(calls[0::CALL_FIELDS], np.int64)
    codes = calls[1::CALL_FIELDS]
    what = np.array(calls[2::CALL_FIELDS], np.int64)
    identity = np.fromiter(map(id, codes), np.int64, count)
    # What was open at the start is entered first, and what is open at the end is left last.
    depth = len(piece.base)
    entries = np.concatenate((np.full(depth, 1), np.where(what == EXIT, -1, 1)))
    times = np.concatenate((np.full(depth, piece.start_ns), times))
    identity = np.concatenate((np.array([id(code) for code, _ in piece.base], np.int64), identity))
    enter, leave = _match(entries, identity)
    end = np.where(leave >= 0, times[leave], max(piece.end_ns, int(times[-1]) if len(times) else 0))
    # Distinct places: the base's by line, others by instruction.
    opened = enter >= depth
    place = np.where(opened, what[np.maximum(enter - depth, 0)] if count else 0, -3 - enter)
    pairs, first, number = np.unique(np.stack((identity[enter], place)), axis=1, return_index=True,
                                     return_inverse=True)
    known: list[tuple[CodeType, int | None, int]] = []
    for row in enter[first].tolist():
        if row < depth:
            code, line = piece.base[row]
            known.append((code, line, 0))
        else:
            known.append((codes[row - depth], None, int(what[row - depth])))
    return {"codes": known, "call": number.reshape(-1), "start_ns": times[enter], "end_ns": end}


def _match(entries: np.ndarray, identity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the enters, and for each the row of its exit or -1."""
    level = np.cumsum(entries)
    depth = np.where(entries > 0, level, level + 1)
    if (depth > 0).all():
        order = np.argsort(depth, kind="stable")
        enters = entries[order] > 0
        # On one level enters and exits take turns, so an enter's exit is the next row if it is on the same level.
        place = np.flatnonzero(enters)
        after = np.minimum(place + 1, len(order) - 1)
        closed = (place + 1 < len(order)) & (depth[order[after]] == depth[order[place]])
        enter, leave = order[place], np.where(closed, order[after], -1)
        fits = leave < 0
        fits |= identity[leave] == identity[enter]
        if fits.all():
            by_start = np.argsort(enter)
            return enter[by_start], leave[by_start]
    return _match_by_walking(entries.tolist(), identity.tolist())


def _match_by_walking(entries: list[int], identity: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """As `_match` where reports are missing, as when a program sets a profile function of its own for a while.

    An exit closes the innermost open call of its code and all calls inside that; an exit of nothing open is dropped.
    """
    leave: dict[int, int] = {}
    stack: list[int] = []
    opened: dict[int, int] = {}
    for row, (entry, code) in enumerate(zip(entries, identity, strict=True)):
        if entry > 0:
            leave[row] = -1
            stack.append(row)
            opened[code] = opened.get(code, 0) + 1
        elif opened.get(code):
            while True:
                closed = stack.pop()
                leave[closed] = row
                opened[identity[closed]] -= 1
                if identity[closed] == code:
                    break
    return np.array(list(leave), np.int64), np.array(list(leave.values()), np.int64)


# -- names -------------------------------------------------------------------------------------------------------------


class CallNames:
    """`path/file.py(12): function`, with the path relative to where Python found the file."""

    def __init__(self, build: TraceBuilder) -> None:
        self.build = build
        self.roots = sorted({os.path.join(os.path.abspath(path), "") for path in sys.path}, key=len, reverse=True)
        self.files: dict[str, str] = {}

    def of(self, codes: list[tuple[CodeType, int | None, int]], call: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each call its name, and whether it is library code."""
        names = []
        for code, line, instruction in codes:
            shown = line_of(code, instruction) if line is None else line
            names.append(self.build.name(f"{self.file(code.co_filename)}({shown}): {code.co_name}"))
        library = [is_library(code.co_filename) for code, _, _ in codes]
        return np.array(names, np.int32)[call], np.array(library, bool)[call]

    def file(self, path: str) -> str:
        """The path below the longest entry of `sys.path` that it is in."""
        found = self.files.get(path)
        if found is None:
            root = next((root for root in self.roots if path.startswith(root)), "")
            found = self.files[path] = path[len(root):]
        return found


def is_library(file: str) -> bool:
    """Whether kernels are made of this file: NumPy or the standard library."""
    return file.startswith((*_KERNEL_FILES, "<__array_function__")) or (
        file.startswith((_STANDARD_FILES, "<frozen ")) and _INSTALLED not in file)


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction; the function's first line where it has none."""
    for start, end, line in code.co_lines():
        if start <= instruction < end:
            return line or code.co_firstlineno
    return code.co_firstlineno
