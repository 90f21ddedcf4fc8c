"""Who encloses whom, from start and end times alone.

Rows are sorted by thread, start, and longest first, so that a parent precedes its children. Where intervals of a
thread nest properly the answer is vectorised; where some cross (a generator suspended inside a scope, a file from
elsewhere), that thread is walked with a stack and an event's parent is the innermost one that contains it whole.
"""

from __future__ import annotations

import numpy as np


def parents(thread: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The row of each event's parent, or -1."""
    result = np.full(len(start), -1, np.int32)
    if not len(start):
        return result
    borders = np.flatnonzero(np.diff(thread)) + 1
    for low, high in zip([0, *borders.tolist()], [*borders.tolist(), len(start)]):
        found = _nested(start[low:high], end[low:high])
        if found is None:
            found = _walk(start[low:high], end[low:high])
        result[low:high] = np.where(found >= 0, found + low, -1)
    return result


def _nested(start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """Parents for one thread, or None if some intervals cross."""
    count = len(start)
    # An event's depth is how many events started before it minus how many of those had ended by then.
    ended = np.searchsorted(np.sort(end), start, side="right")
    # Zero-length events at the same instant as their own start count as ended; take those back.
    instant = start == end
    if instant.any():
        ended = ended - (np.searchsorted(np.sort(end[instant]), start, "right")
                         - np.searchsorted(np.sort(end[instant]), start, "left"))
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
    if (end[result[inside]] < end[inside]).any() or (end[result[inside]] < start[inside]).any():
        return None
    # A crossing can also hide as a wrong depth; then some event would start inside an earlier sibling.
    siblings = np.lexsort((start, result))
    same = result[siblings][1:] == result[siblings][:-1]
    if (same & (end[siblings][:-1] > start[siblings][1:])).any():
        return None
    return result


def _walk(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Parents for one thread whose intervals may cross.

    Crossing intervals make siblings overlap; to keep self times from going negative, an event that would overlap an
    earlier sibling is treated as having no parent.
    """
    result = np.full(len(start), -1, np.int64)
    stack: list[int] = []
    covered: dict[int, int] = {}  # parent -> end of its last child
    starts, ends = start.tolist(), end.tolist()
    for row in range(len(starts)):
        while stack and ends[stack[-1]] <= starts[row] and not (starts[row] == ends[row] == ends[stack[-1]]):
            stack.pop()
        for above in reversed(stack):
            if ends[above] >= ends[row]:
                if covered.get(above, -1) <= starts[row] or covered.get(above) is None:
                    result[row] = above
                    covered[above] = ends[row]
                break
        stack.append(row)
        stack.sort(key=lambda r: -ends[r])
    return result


def enclosing_rows(events: dict[str, np.ndarray], thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """The innermost event of a thread at each instant, or -1."""
    result = np.full(len(time_ns), -1, np.int32)
    if not len(time_ns) or not len(events["start_ns"]):
        return result
    for which in np.unique(thread).tolist():
        rows = np.flatnonzero(events["thread"] == which)
        asked = np.flatnonzero(thread == which)
        if not len(rows):
            continue
        found = rows[np.maximum(np.searchsorted(events["start_ns"][rows], time_ns[asked], "right") - 1, 0)]
        found = np.where(events["start_ns"][found] <= time_ns[asked], found, -1)
        # Climb until the event has not ended yet; the number of rounds is bounded by the depth of the tree.
        while True:
            over = (found >= 0) & (events["end_ns"][np.maximum(found, 0)] < time_ns[asked])
            if not over.any():
                break
            found = np.where(over, events["parent"][np.maximum(found, 0)], found)
        result[asked] = found
    return result
