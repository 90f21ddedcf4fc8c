"""Threads that wait: for locks, sleeps, queues, sockets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ...names import parse_frame
from ...schema import Kind
from ..figures import percent_text, time_text
from ..intervals import covered, union
from ..places import is_users
from .basis import DATA, during, span_ns
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

SHARE = 0.10
# Built-in functions in which a thread waits for something else.
_WAITS = re.compile(r"<built-in (?:method|function) (acquire|wait|sleep|select|poll|epoll_wait|recv|recv_into|accept"
                    r"|read|join|get|waitpid|wait4|lock|acquire_lock|_acquire_restore)(?: of ([\w.]+))?[ >]")
# Functions of the standard library around them; not all recordings have the calls inside these.
_WAITING_FUNCTIONS = frozenset({
    ("threading", "wait"), ("threading", "wait_for"), ("threading", "join"), ("queue", "get"), ("queue", "put"),
    ("connection", "recv"), ("connection", "recv_bytes"), ("connection", "poll"), ("connection", "wait"),
    ("queues", "get"), ("queues", "put"), ("popen_fork", "wait"), ("popen_fork", "poll"), ("process", "join"),
    ("selectors", "select"), ("subprocess", "wait"), ("subprocess", "communicate"), ("_base", "result"),
    ("_base", "wait"), ("socket", "readinto"), ("socket", "accept"), ("synchronize", "wait"),
})
_NOT_WAITS = frozenset({"dict", "_contextvars.ContextVar", "ContextVar", "str", "bytes", "mappingproxy",
                        "collections.OrderedDict", "_io.BytesIO", "_io.StringIO", "weakref.WeakValueDictionary"})


def is_wait(name: str) -> bool:
    """Whether a Python call of this name waits.

    >>> is_wait("threading.py(295): wait"), is_wait("train.py(7): wait")
    (True, False)
    >>> is_wait("<built-in method acquire of _thread.lock object>"), is_wait("<built-in method get of dict object>")
    (True, False)
    """
    found = _WAITS.match(name)
    if found is not None:
        return found[2] not in _NOT_WAITS
    frame = parse_frame(name)
    base = re.split(r"[/\\]", frame.file)[-1].removesuffix(".py")
    return (base, frame.function) in _WAITING_FUNCTIONS and not is_users(frame)


def look(analysis: Analysis) -> Result:
    """Waiting calls of the thread that makes the steps; waits for the loader count as data."""
    trace, events = analysis.trace, analysis.trace.events
    if not (events["kind"] == Kind.PYTHON).any():
        return Unknown("Python calls were not recorded (with_stack=True)")
    waits = np.array([is_wait(name) for name in trace.names], bool)[events["name"]]
    rows = np.flatnonzero(waits & (events["kind"] == Kind.PYTHON) & (events["thread"] == analysis.steps.thread))
    rows = rows[~during(analysis, rows, *DATA)]
    steps = analysis.steps
    within = covered(union(events["start_ns"][rows], events["end_ns"][rows]), steps.start_ns, steps.end_ns)
    total = int(within[analysis.breakdown.warmup:].sum())
    share = total / span_ns(analysis)
    if share < SHARE:
        return Clean(f"the thread that makes the steps waits for {share:.1%} of them")
    elapsed = trace.duration_ns[rows]
    place = analysis.places.of_rows(rows, elapsed)
    sums = np.bincount(events["name"][rows], elapsed)
    what = re.sub(r" at 0x[0-9a-f]+", "", trace.names[int(np.argmax(sums))])
    return Finding("waiting", f"The training thread waits for {percent_text(share)} of the steps, most of it "
                   f"in {what}.",
                   [Figure("waits", len(rows), "count"), Figure("together", total, "ns"),
                    Figure("share of the steps", share, "share"), Figure("longest wait", int(elapsed.max()), "ns"),
                    Figure("in", f"{what} ({time_text(sums.max())})", "text"),
                    Figure("other threads in the recording", max(0, len(trace.threads) - 1), "count")],
                   "See in the timeline what it waits for at these moments. Let work continue during the wait "
                   "(a queue with room for more than one item, a lock held for less), or move the wait out "
                   "of the loop.",
                   place, total, share, page="timeline", query=what)
