"""Makes events from recorded Python calls, and from those the stack of every other event."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

from ..sources.call_book import DELEGATES, EXIT, OpenCall
from ..sources.python_calls import CallPiece, Left, Records

Spans = Callable[[ThreadInfo], tuple[np.ndarray, np.ndarray]]


def add_python_calls(build: TraceBuilder, pieces: Sequence[CallPiece], steps_ns: np.ndarray, spans: Spans) -> None:
    """Add the calls as events. Threads on which nothing happened are left out unless they ran ops.

    `spans` gives starts and ends of the other events of a thread.
    """
    lanes = {(info.pid, info.tid): info for info in build.threads}
    names = CallNames(build)
    for piece in pieces:
        # Both sides name threads; the op's lane takes precedence if a thread was renamed in between.
        info = lanes.get((piece.info.pid, piece.info.tid))
        if info is None and piece.idle:
            piece.left.append(Left(piece.base, piece.base_ns, piece.records, {}, idle=True))
            continue
        if piece.goes_on:
            piece, held = settled(piece)
        calls = paired(piece)
        if piece.late and info is not None:
            enclose(calls, len(piece.base), *spans(info))
        if piece.goes_on:
            calls, base, base_ns = without_open(calls)
            piece.left.append(Left(base, base_ns, held, piece.objects if len(held[0]) else {}, idle=False))
        if len(calls.code):
            name = np.array([names.of(*code) for code in calls.codes], np.int32)[calls.code]
            build.add_columns("events", {
                "name": name, "kind": np.full(len(name), Kind.PYTHON, np.uint8), "start_ns": calls.start_ns,
                "end_ns": calls.end_ns, "thread": np.full(len(name), build.thread(info or piece.info), np.int32),
                "step": np.searchsorted(steps_ns, calls.start_ns, "right").astype(np.int32),
            })


def enclose(calls: PairedCalls, depth: int, start_ns: np.ndarray, end_ns: np.ndarray) -> None:
    """Set the starts of calls that were open at the beginning before those of events that were open then and ended
    earlier.

    Nobody saw the start of the first `depth` calls. An event that was open then is inside a call if it ended before the
    call, and around it otherwise.
    """
    for row in range(depth):
        found, end = calls.start_ns[row], calls.end_ns[row]
        inside = (start_ns < found) & (end_ns >= found) & (end_ns <= end)
        calls.start_ns[row] = start_ns[inside].min(initial=found)
    # An outer call begins no later.
    calls.start_ns[:depth] = np.minimum.accumulate(calls.start_ns[:depth][::-1])[::-1]


def settled(piece: CallPiece) -> tuple[CallPiece, Records]:
    """A piece up to the point where a generator waits for one that has not ended, and the records from there on.

    A waiting generator ends when the other one does; the two can only be interpreted together.
    """
    waiting = np.flatnonzero(piece.instruction <= DELEGATES)
    cut = len(piece.instruction)
    if len(waiting):
        _, identity, what = with_base(piece)
        others = np.flatnonzero(what > DELEGATES)
        enter, leave = _match(_entries(what[others]), identity[others])
        entered = np.append(others, len(what))[np.searchsorted(others, waiting + len(piece.base))]
        waits = np.isin(entered, np.append(others[enter[leave < 0]], len(what)))
        cut = int(waiting[waits].min(initial=cut))
    before, held = (tuple(column[part] for column in piece.records) for part in (slice(cut), slice(cut, None)))
    return replace(piece, time_ns=before[0], identity=before[1], instruction=before[2]), held


def without_open(calls: PairedCalls) -> tuple[PairedCalls, list[OpenCall], list[int]]:
    """The calls that have ended, and the open ones with the times at which they began."""
    rows = np.flatnonzero(calls.is_open)
    base: list[OpenCall] = []
    for number in calls.code[rows].tolist():
        code, line, instruction = calls.codes[number]
        shown = 0 if isinstance(code, str) else line_of(code, instruction) if line is None else line
        base.append((code, shown, 0))
    over = ~calls.is_open
    rest = replace(calls, code=calls.code[over], start_ns=calls.start_ns[over], end_ns=calls.end_ns[over],
                   is_open=calls.is_open[over])
    return rest, base, calls.start_ns[rows].tolist()


# -- enter and exit ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairedCalls:
    """Calls with start and end, as columns."""

    # Distinct ones: code or name of a built-in function, line if it is known, otherwise instruction.
    codes: list[tuple[CodeType | str, int | None, int]]
    code: np.ndarray  # index into `codes`
    start_ns: np.ndarray
    end_ns: np.ndarray
    is_open: np.ndarray  # whether it has not ended


def with_base(piece: CallPiece) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, identities and instructions; calls that were open at the start are entered first."""
    return (np.concatenate((np.array(piece.base_ns, np.int64), piece.time_ns)),
            np.concatenate((np.array([id(code) for code, *_ in piece.base], np.int64), piece.identity)),
            np.concatenate((np.zeros(len(piece.base), np.int64), piece.instruction)))


def paired(piece: CallPiece) -> PairedCalls:
    """Pair each call's enter and exit; calls in the order of their enters, first those open at the start."""
    # Calls open at the start are entered first; calls open at the end are left last.
    depth = len(piece.base)
    times, identity, what = with_base(piece)
    if (what <= DELEGATES).any():
        times, identity, what = _with_ends_of_waiting(times, identity, what)
    enter, leave = _match(_entries(what), identity)
    end = np.where(leave >= 0, times[leave], max(piece.end_ns, int(times[-1]) if len(times) else 0))
    # Distinct places: the base's by line, others by instruction.
    place = np.where(enter >= depth, what[enter], -3 - enter)
    lowest = place.min(initial=0)
    code = np.unique(identity[enter], return_inverse=True)[1].reshape(-1)
    key = code * (place.max(initial=0) - lowest + 1) + (place - lowest)
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    known: list[tuple[CodeType | str, int | None, int]] = []
    for row in enter[first].tolist():
        if row < depth:
            known.append((*piece.base[row][:2], 0))
        else:
            known.append((piece.objects[int(identity[row])], None, int(what[row])))
    return PairedCalls(known, number.reshape(-1), times[enter], end, leave < 0)


def _entries(what: np.ndarray) -> np.ndarray:
    return np.where(what == EXIT, -1, 1)


def _with_ends_of_waiting(times: np.ndarray, identity: np.ndarray, what: np.ndarray) -> tuple[np.ndarray, ...]:
    """The records with an added exit for each generator that waited for another, right behind that one's exit."""
    waiting = what <= DELEGATES
    others = np.flatnonzero(~waiting)
    enter, leave = _match(_entries(what[others]), identity[others])
    exits = np.full(len(what), -1, np.int64)
    exits[others[enter]] = np.where(leave >= 0, others[leave], -1)
    # From the innermost outwards: exits at one place stay in this order.
    rows = np.flatnonzero(waiting)[::-1]
    entered = others[np.minimum(np.searchsorted(others, rows), len(others) - 1)]
    closed = (entered > rows) & (exits[entered] >= 0)
    rows, behind = rows[closed], exits[entered[closed]]
    return (np.insert(times, behind + 1, times[behind]), np.insert(identity, behind + 1, identity[rows]),
            np.insert(np.where(waiting, DELEGATES - what, what), behind + 1, EXIT))


def _match(entries: np.ndarray, identity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the enters, and for each the row of its exit or -1."""
    level = np.cumsum(entries)
    depth = np.where(entries > 0, level, level + 1)
    if (depth > 0).all():
        order = np.argsort(depth, kind="stable")
        enters = entries[order] > 0
        # On one level enters and exits alternate, so an enter's exit is the next row if it has the same level.
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
    """Like `_match` with missing reports, as when a program sets a profile function of its own for a while.

    An exit closes the innermost open call of its code and all calls inside it; an exit without an open call is dropped.
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
    """`path/file.py(12): function`, with the path relative to the directory where Python found the file."""

    def __init__(self, build: TraceBuilder) -> None:
        self.build = build
        self.roots = sorted({os.path.join(os.path.abspath(path), "") for path in sys.path}, key=len, reverse=True)
        self.files: dict[str, str] = {}

    def of(self, code: CodeType | str, line: int | None, instruction: int) -> int:
        """The name of a call, as an index into the trace's names."""
        if isinstance(code, str):
            return self.build.name(code)
        shown = line_of(code, instruction) if line is None else line
        return self.build.name(f"{self.file(code.co_filename)}({shown}): {code.co_name}")

    def file(self, path: str) -> str:
        """The path below the longest entry of `sys.path` that contains it."""
        found = self.files.get(path)
        if found is None:
            root = next((root for root in self.roots if path.startswith(root)), "")
            found = self.files[path] = path[len(root):]
        return found


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction; the function's first line if it has none."""
    for start, end, line in code.co_lines():
        if start <= instruction < end:
            return line or code.co_firstlineno
    return code.co_firstlineno
