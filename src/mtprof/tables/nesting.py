"""The nesting of events, from start and end times alone.

Rows are sorted by thread, start, and longest first, so a parent precedes its children. If intervals nest properly, the
answer is computed for all threads at once. A thread on which some cross (a generator suspended inside a scope, a file
from elsewhere) is walked with a stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..trace import Columns, split_python

_FEW_ROUNDS = 16  # of climbing to the event around, before sorting all boundaries instead


def on_one_line(lanes: Sequence[np.ndarray], times: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Times of many threads, given with their threads, on one axis where the threads' stretches do not touch."""
    filled = [time for time in times if len(time)]
    if not filled:
        return list(times)
    low, high = min(int(time.min()) for time in filled), max(int(time.max()) for time in filled)
    count = 1 + max(int(lane.max()) for lane in lanes if len(lane))
    span = high - low + 2
    if span * count < 2**63:
        return [(time - low) + lane.astype(np.int64) * span for time, lane in zip(times, lanes)]
    # Too far apart to add up: their ranks keep the order.
    values = np.unique(np.concatenate(filled))
    return [np.searchsorted(values, time) + lane.astype(np.int64) * (len(values) + 1)
            for time, lane in zip(times, lanes)]


def parents(thread: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The row of each event's parent, or -1."""
    if not len(start):
        return np.zeros(0, np.int32)
    lower, upper = on_one_line((thread, thread), (start, end))
    found = _nested(lower, upper)
    if found is not None:
        return found.astype(np.int32)
    result = np.full(len(start), -1, np.int32)
    borders = [0, *(np.flatnonzero(np.diff(thread)) + 1).tolist(), len(start)]
    for low, high in pairwise(borders):
        found = _nested(lower[low:high], upper[low:high])
        if found is None:
            found = _walk(lower[low:high], upper[low:high])
        result[low:high] = np.where(found >= 0, found + low, -1)
    return result


def _nested(start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """Parents for sorted intervals, or None if some cross."""
    count = len(start)
    # An event's depth is how many events started before it minus how many of those had ended by then.
    ended = np.searchsorted(np.sort(end), start, side="right")
    # Zero-length events at the same instant as their own start count as ended; take those back.
    instant = start == end
    if instant.any():
        instants = np.sort(end[instant])
        ended = ended - (np.searchsorted(instants, start, "right") - np.searchsorted(instants, start, "left"))
        first_of_run = np.searchsorted(start, start, "left")
        before = np.concatenate(([0], np.cumsum(instant)))
        ended = ended + before[np.arange(count)] - before[first_of_run]
    depth = np.arange(count) - ended
    if (depth < 0).any():
        return None
    result = np.full(count, -1, np.int64)
    by_depth = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[by_depth], np.arange(depth.max() + 2))
    above = by_depth[edges[0]: edges[1]]
    for level in range(1, int(depth.max()) + 1):
        here = by_depth[edges[level]: edges[level + 1]]
        position = np.searchsorted(above, here) - 1
        if len(here) and (position < 0).any():
            return None
        result[here] = above[position]
        above = here
    inside = result >= 0
    if (end[result[inside]] < end[inside]).any():
        return None
    # A crossing can also hide as a wrong depth; then some event would start inside an earlier sibling.
    siblings = np.argsort(result, kind="stable")
    same = result[siblings][1:] == result[siblings][:-1]
    if (same & (end[siblings][:-1] > start[siblings][1:])).any():
        return None
    return result


def _walk(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Parents for one thread whose intervals may cross.

    An event that outlasts those around it closes them: later events are not inside them, as in PyTorch's list of
    events. To keep self times from going negative, an event that would overlap an earlier sibling has no parent.
    """
    result = []
    open_rows: list[int] = []
    covered: dict[int, int] = {}  # parent -> end of its last child
    ends = end.tolist()
    for row, (low, high) in enumerate(zip(start.tolist(), ends)):
        while open_rows and ends[open_rows[-1]] < high:
            open_rows.pop()
        above = open_rows[-1] if open_rows else -1
        if above >= 0 and covered.get(above, low) > low:
            above = -1
        elif above >= 0:
            covered[above] = high
        result.append(above)
        open_rows.append(row)
    return np.array(result, np.int64)


def enclosing_rows(events: Columns, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """The innermost event of a thread at each instant, or -1; an event's last moment is inside."""
    if not len(time_ns) or not len(events["start_ns"]):
        return np.full(len(time_ns), -1, np.int32)
    lane = events["thread"]
    start, end, asked = on_one_line((lane, lane, thread), (events["start_ns"], events["end_ns"], time_ns))
    found = np.searchsorted(start, asked, "right") - 1
    found = np.where((found >= 0) & (lane[np.maximum(found, 0)] == thread), found, -1)
    parent = events["parent"]

    def climb(rounds: int) -> np.ndarray:
        """Climb to the event around until it has not ended yet; returns the rows that are not done after some
        rounds."""
        over = np.flatnonzero((found >= 0) & (end[found] < asked))
        while len(over) and rounds:
            found[over] = parent[found[over]]
            over = over[(found[over] >= 0) & (end[found[over]] < asked[over])]
            rounds -= 1
        return over

    deep = climb(_FEW_ROUNDS)
    if len(deep):
        found[deep] = _swept(start, end, parent, asked[deep])
        climb(len(start))  # if intervals cross, what a boundary leads to may have ended
    return found.astype(np.int32)


def _swept(start: np.ndarray, end: np.ndarray, parent: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """For each instant, what the last boundary before it leads to: a start to its event, an end to the parent."""
    rows = np.arange(len(start))
    time = np.concatenate((start, asked, end))
    what = np.repeat([0, 1, 2], [len(start), len(asked), len(end)])  # at one instant: starts, questions, ends
    place = np.concatenate((rows, np.arange(len(asked)), -rows))  # inner events end first
    leads = np.concatenate((rows, np.full(len(asked), -2), parent))
    order = np.lexsort((place, what, time))
    leads, what = leads[order], what[order]
    last = np.maximum.accumulate(np.where(what == 1, -1, np.arange(len(order))))
    answers = np.where(last >= 0, leads[np.maximum(last, 0)], -1)[what == 1]
    result = np.empty(len(asked), np.int64)
    result[order[what == 1] - len(start)] = answers
    return result


def above(events: Columns, rows: np.ndarray) -> np.ndarray:
    """The parents of some rows among these rows."""
    found = parents(events["thread"][rows], events["start_ns"][rows], events["end_ns"][rows])
    return np.append(rows, -1)[found].astype(np.int32)


def all_parents(events: Columns) -> np.ndarray:
    """The column `parent`: Python calls are in Python calls, and everything else is in events that are not."""
    result = np.full(len(events["start_ns"]), -1, np.int32)
    for rows in split_python(events):
        result[rows] = above(events, rows)
    return result


def part(events: Columns, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Some rows with their times and parents, which must be among them, as a table of its own."""
    found = {key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}
    parent = events["parent"][rows]
    found["parent"] = np.where(parent >= 0, np.searchsorted(rows, parent), -1).astype(np.int32)
    return found


def rows_around(events: Columns, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """The innermost event around each instant, without Python calls, or -1."""
    others = split_python(events)[0]
    return np.append(others, -1)[enclosing_rows(part(events, others), thread, time_ns)].astype(np.int32)


def next_rows(events: Columns, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """The first event, without Python calls, that starts on this thread from this time on, or -1."""
    rows = split_python(events)[0]
    if not len(time_ns) or not len(rows):
        return np.full(len(time_ns), -1, np.int32)
    lane = events["thread"][rows]
    start, asked = on_one_line((lane, thread), (events["start_ns"][rows], time_ns))
    found = np.searchsorted(start, asked)
    inside = found < len(rows)
    inside[inside] = lane[found[inside]] == thread[inside]
    return np.where(inside, rows[np.minimum(found, len(rows) - 1)], -1).astype(np.int32)
