"""`TraceView`: a trace's columns as PyTorch's event list shows them, still as columns.

It differs from the trace in four ways. Bookkeeping ops are left out, and so is an event that only repeats its parent
(same name, only child), as in PyTorch; their children move up. First uses of ops are not rows, and no self time
includes them. Rows are ordered by start over all threads. With memory, changes outside any event are rows of their own.
A row's index in this order is its position.

Python calls do not change other rows: the parent of an op is an op or a scope, never a call. A call in turn has the ops
that it ran among its children, and its self time excludes theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..devices import CPU_MEMORY, DEVICE_MEMORY, TIMED
from ..schema import KINDS, PYTHON_KINDS, Kind
from ..tables.derived import callers
from ..tables.links import forward_of
from ..tables.nesting import enclosing_rows, rows_around
from ..tables.tree import lifted, nearest, subtree_sums, time_order
from ..trace import Columns, Trace
from .formatting import (
    HIDDEN_NAMES,
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    _filter_stack_entry,
    _rewrite_name,
)

# Events with an id of the recording; Python calls and device work have none.
_NUMBERED = (Kind.OP, Kind.BACKWARD, Kind.BACKWARD_FUNCTION, Kind.SCOPE, Kind.STEP, Kind.OTHER)
_SCOPES = np.array([KINDS[kind].scope for kind in Kind])


class ShownNames:
    """The names of events in PyTorch's list, and which one each name of a trace gets."""

    def __init__(self, names: Sequence[str]) -> None:
        index: dict[str, int] = {}
        shown = [index.setdefault(_rewrite_name(text, with_wildcard=True), len(index))
                 for text in [*names, MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME]]
        self.texts = list(index)
        *shown, self.memory, self.failure = shown
        self.shown = np.array(shown or [0], np.int64)
        self.hidden = np.array([text in HIDDEN_NAMES for text in names], bool)


class TraceView:
    """See the module's docstring. Columns are computed on first use."""

    with_metadata = False  # whether events know their number in a file

    def __init__(self, trace: Trace, *, use_device: str | None = None, profile_memory: bool = False,
                 names: ShownNames | None = None) -> None:
        self.trace = trace
        self.use_device = use_device
        self.profile_memory = profile_memory
        events = trace.events
        count = len(trace)
        self._shown = shown = ShownNames(trace.names) if names is None else names
        self.names = shown.texts
        name = shown.shown[events["name"]]
        on_cpu = events["device"] == 0
        kept = ~shown.hidden[events["name"]] if shown.hidden.any() else np.ones(count, bool)
        kept &= events["kind"] != Kind.FIRST_USE
        # Only CPU events have parents and children.
        parent = lifted(events["parent"], kept & on_cpu)
        if not on_cpu.all():
            parent = np.where(on_cpu, parent, np.int32(-1))
        caller = callers(events)
        # Few events may repeat their parent; only for these the number of the parent's children matters.
        above = np.flatnonzero(kept & (parent >= 0))
        above = above[name[parent[above]] == name[above]]
        if len(above):
            children = np.bincount(parent[kept & (parent >= 0)], minlength=count)
            children += np.bincount(caller[kept & (caller >= 0)], minlength=count)
            kept[above[children[parent[above]] == 1]] = False
            parent = lifted(parent, kept)
        self._is_home = kept & on_cpu
        # A call that is not shown passes what it ran to the call that it repeats.
        self._caller_of_row = np.where(caller >= 0, self._home[caller], -1) if (caller >= 0).any() else caller
        rows = np.flatnonzero(kept)
        changes = self._outside_changes()
        self.row_count = len(rows)
        start, end = events["start_ns"], events["end_ns"]
        # Rows are positions if all are shown and one thread ran at a time, as in pieces of a large trace.
        self._in_place = self.row_count == count and not len(changes) and bool((start[1:] >= start[:-1]).all())
        if self._in_place:
            self.row, self.change = rows, np.full(count, -1)  # row of the trace, -1 for memory; and the reverse
            self.start_ns, self.end_ns = start, end
        else:
            start = np.concatenate((start[rows], self.memory["time_ns"][changes]))
            end = np.concatenate((end[rows], self.memory["time_ns"][changes]))
            order = time_order(start, end)
            self.row = np.concatenate((rows, np.full(len(changes), -1)))[order]
            self.change = np.concatenate((np.full(len(rows), -1), changes))[order]
            self.start_ns, self.end_ns = start[order], end[order]
        self._name_of_row, self._parent_of_row = name, parent
        self.objects: list[Any] | None = None  # the event objects made so far, by position

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def _home(self) -> np.ndarray:
        """By row of the trace: the row that takes the place of a hidden one, or -1."""
        return nearest(self.trace.events["parent"], self._is_home)

    def _outside_changes(self) -> np.ndarray:
        """Memory changes outside any shown event, and all failed allocations."""
        if not self.profile_memory:
            return np.zeros(0, np.int64)
        shown = self._home_of_change < 0
        shown[len(self.trace.optional("memory")["time_ns"]):] = True
        return np.flatnonzero(shown)

    @cached_property
    def memory(self) -> Columns:
        """Memory changes, then failed allocations, which change nothing."""
        memory, failures = self.trace.optional("memory"), self.trace.optional("failures")
        count = len(failures["time_ns"])
        if not count:
            return memory
        nothing = np.zeros(count, np.int64)
        instead = {**failures, "size_bytes": nothing, "address": nothing, "line": nothing,
                   "row": rows_around(self.trace.events, failures["thread"], failures["time_ns"])}
        return {key: np.concatenate((memory[key], instead[key])) for key in memory}

    @cached_property
    def _home_of_change(self) -> np.ndarray:
        row = self.memory["row"]
        if not len(self.trace):
            return row
        return np.where(row >= 0, self._home[row], -1)

    def column(self, name: str, default: int) -> np.ndarray:
        """A column of the trace by position; `default` for memory rows."""
        values = self.trace.events[name]
        if self._in_place:
            return values
        if not len(values):
            return np.full(len(self), default, values.dtype)
        values = values[self.row]
        return values if self.row_count == len(self) else np.where(self.row >= 0, values, default)

    @cached_property
    def position(self) -> np.ndarray:
        """Position by row of the trace, -1 for rows that are not shown; one more -1 at the end for "no row"."""
        result = np.full(len(self.trace) + 1, -1, np.int64)
        here = np.flatnonzero(self.row >= 0)
        result[self.row[here]] = here
        return result

    @cached_property
    def parent(self) -> np.ndarray:
        """Position of the parent, or -1."""
        if self._in_place:
            return self._parent_of_row
        if not len(self.trace):
            return np.full(len(self), -1)
        # A memory change within an event is not shown; a failed allocation is.
        inside = np.append(self._home_of_change, -1)[self.change]
        return self.position[np.where(self.row >= 0, self._parent_of_row[self.row], inside)]

    @cached_property
    def ran(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of Python calls, and of what they ran that is not a call: an entry each per such row."""
        caller = self._caller_of_row[self.row] if len(self.trace) else np.zeros(0, np.int64)
        inner = np.flatnonzero((self.row[: len(caller)] >= 0) & (caller >= 0))
        return self.position[caller[inner]], inner

    @cached_property
    def _ran_around(self) -> tuple[np.ndarray, np.ndarray]:
        """For what calls ran inside an op or scope that an outer call ran: that call, and the part counted twice.

        A scope is wholly in the call that opened it; what it contains is also in the calls that it contains.
        """
        call, inner = self.ran
        of = np.full(len(self), -1)
        of[inner] = call
        above = self.parent[inner]
        part, above = inner[above >= 0], above[above >= 0]
        if not len(part):
            return part, part
        owner = nearest(self.parent, of >= 0)[above]
        return of[owner[owner >= 0]], part[owner >= 0]

    @cached_property
    def _calls_in_scopes(self) -> np.ndarray:
        """Positions of Python calls that ran inside an op or scope which their caller ran."""
        call, inner = self.ran
        calls = np.flatnonzero(np.isin(self.kind, PYTHON_KINDS) & (self.parent >= 0))
        if not len(call) or not len(calls):
            return calls[:0]
        caller = np.concatenate((call, self.parent[calls]))
        what = np.concatenate((inner, calls))
        is_call = np.arange(len(what)) >= len(inner)
        order = np.lexsort((is_call, self.start_ns[what], caller))
        # What one call ran is sequential, so only the last before a call can be around it.
        last = np.maximum.accumulate(np.where(is_call[order], -1, np.arange(len(order))))
        seen = is_call[order] & (last >= 0)
        at, before = order[seen], order[last[seen]]
        inside = (caller[at] == caller[before]) & (self.end_ns[what[at]] <= self.end_ns[what[before]])
        return what[at[inside]]

    @cached_property
    def _is_in_scope(self) -> set[int]:
        return set(self._calls_in_scopes.tolist())

    def in_a_scope(self, position: int) -> bool:
        """Whether this is a Python call inside an op or scope that its caller ran, and so a part of that."""
        return position in self._is_in_scope

    def _with_calls(self, totals: np.ndarray) -> np.ndarray:
        """Totals of a tree of ops, and of calls too: everything that ran in them."""
        call, inner = self.ran
        if len(call):
            within = np.zeros_like(totals)
            np.add.at(within, call, totals[inner])
            around, part = self._ran_around
            np.subtract.at(within, around, totals[part])
            totals = totals + subtree_sums(self.parent, within)
        return totals

    @cached_property
    def name(self) -> np.ndarray:
        """Index into `names`."""
        if self._in_place:
            return self._name_of_row
        if not len(self.trace):
            return self._names_of_changes
        return np.where(self.row >= 0, self._name_of_row[self.row], self._names_of_changes)

    @property
    def _names_of_changes(self) -> np.ndarray:
        changes = len(self.trace.optional("memory")["time_ns"])
        return np.where(self.change < changes, self._shown.memory, self._shown.failure)

    @cached_property
    def kind(self) -> np.ndarray:
        """Kinds; memory rows count as OTHER."""
        return self.column("kind", Kind.OTHER)

    @cached_property
    def device(self) -> np.ndarray:
        """Device types by number."""
        return self.column("device", 0)

    @cached_property
    def step(self) -> np.ndarray:
        """Profiler steps. Memory columns have none, so a memory row has the step of the last event started before
        it."""
        steps = self.column("step", 0)
        last = np.maximum.accumulate(np.where(self.row >= 0, np.arange(len(self)), -1))
        return np.where(last >= 0, steps[last], 0)

    @cached_property
    def line(self) -> np.ndarray:
        """The line of the program that ran, 0 if unknown."""
        return np.where(self.row >= 0, self.column("line", 0), np.append(self.memory["line"], 0)[self.change])

    @cached_property
    def scope(self) -> np.ndarray:
        """PyTorch's RecordScope."""
        return _SCOPES[self.kind]

    @cached_property
    def is_annotation(self) -> np.ndarray:
        """Whether a user (or an optimizer, on the user's behalf) marked it."""
        return (self.kind == Kind.SCOPE) | (self.kind == Kind.STEP)

    @cached_property
    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions sorted by parent, and where each parent's positions begin (one more entry closes the last)."""
        call, inner = self.ran
        parent = np.concatenate((self.parent, call))
        child = np.concatenate((np.arange(len(self)), inner))
        order = np.lexsort((child, parent)) if len(call) else np.argsort(parent, kind="stable")
        return child[order], np.searchsorted(parent[order], np.arange(len(self) + 1))

    def children_of(self, position: int) -> list[int]:
        """Positions of the children, in order of start."""
        order, begins = self.children
        return order[begins[position]: begins[position + 1]].tolist()

    # Times, in nanoseconds.

    @cached_property
    def cpu_ns(self) -> np.ndarray:
        """CPU time with children."""
        return np.where(self.device == 0, self.end_ns - self.start_ns, 0)

    @cached_property
    def self_cpu_ns(self) -> np.ndarray:
        """CPU time without children and without first uses of ops."""
        return np.maximum(self.cpu_ns - self._of_children(self.cpu_ns) - self._of_first_uses, 0)

    @cached_property
    def _of_first_uses(self) -> np.ndarray:
        events = self.trace.events
        result = np.zeros(len(self), np.int64)
        rows = outermost_first_uses(self.trace)
        if len(rows):
            home = np.where(self._home[rows] >= 0, self._home[rows], self._caller_of_row[rows])
            at = self.position[home]
            np.add.at(result, at[at >= 0], (events["end_ns"] - events["start_ns"])[rows[at >= 0]])
        return result

    def _of_children(self, values: np.ndarray) -> np.ndarray:
        inside = np.flatnonzero(self.parent >= 0)
        # Sums of nanoseconds stay below 2**53 for a hundred days, so float weights are exact.
        result = np.bincount(self.parent[inside], values[inside], minlength=len(self)).astype(np.int64)
        call, inner = self.ran
        np.add.at(result, call, values[inner])
        twice = self._calls_in_scopes
        np.subtract.at(result, self.parent[twice], values[twice])
        return result

    @cached_property
    def launcher(self) -> np.ndarray:
        """By row of the trace: the shown host row that launched this device work (or runtime call), or -1."""
        events = self.trace.events
        result = np.full(len(self.trace), -1, np.int64)
        correlation, on_cpu = events["correlation"], events["device"] == 0
        linked = np.flatnonzero(correlation != 0)
        hosts = linked[on_cpu[linked]]
        if not len(hosts):
            return result
        # The op that made a runtime call launched the work.
        caller = nearest(events["parent"], on_cpu & (events["kind"] != Kind.LAUNCH))
        not_launch = np.where(caller >= 0, self._home[caller], -1)
        keys, first = np.unique(correlation[hosts], return_index=True)
        at = np.minimum(np.searchsorted(keys, correlation[linked]), len(keys) - 1)
        found = not_launch[hosts[first[at]]]
        depends = ~on_cpu[linked] | (events["kind"][linked] == Kind.LAUNCH)
        result[linked] = np.where((keys[at] == correlation[linked]) & depends, found, -1)
        return result

    @cached_property
    def launched(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of device work that has a launcher, and the positions of those launchers; sorted by the latter."""
        work = np.flatnonzero((self.row >= 0) & np.isin(self.device, TIMED))
        launcher = self.position[self.launcher[self.row[work]]]
        work, launcher = work[launcher >= 0], launcher[launcher >= 0]
        order = np.argsort(launcher, kind="stable")
        return work[order], launcher[order]

    @cached_property
    def self_device_ns(self) -> np.ndarray:
        """Device time of the device row itself, or of the work that the CPU row itself launched."""
        elapsed = self.end_ns - self.start_ns
        own = np.where(np.isin(self.device, TIMED), elapsed, 0)
        if not self.use_device:
            return np.zeros_like(own)
        work, launcher = self.launched
        np.add.at(own, launcher, elapsed[work])
        return own

    @cached_property
    def device_ns(self) -> np.ndarray:
        """Device time with that of children."""
        return self._with_calls(subtree_sums(self.parent, self.self_device_ns))

    # Memory, in bytes.

    def _memory(self, devices: tuple[int, ...]) -> np.ndarray:
        own = np.zeros(len(self), np.int64)
        if self.profile_memory:
            memory = self.memory
            counted = np.flatnonzero(np.isin(memory["device"], devices))
            where = self.position[self._home_of_change[counted]]
            np.add.at(own, where[where >= 0], memory["size_bytes"][counted[where >= 0]])
            outside = np.flatnonzero(self.change >= 0)
            change = self.change[outside]
            own[outside] = np.where(np.isin(memory["device"][change], devices), memory["size_bytes"][change], 0)
        return own

    @cached_property
    def self_cpu_bytes(self) -> np.ndarray:
        """CPU memory of the row itself."""
        return self._memory(CPU_MEMORY)

    @cached_property
    def cpu_bytes(self) -> np.ndarray:
        """CPU memory with children."""
        return self._with_calls(subtree_sums(self.parent, self.self_cpu_bytes))

    @cached_property
    def self_device_bytes(self) -> np.ndarray:
        """Device memory of the row itself."""
        return self._memory(DEVICE_MEMORY)

    @cached_property
    def device_bytes(self) -> np.ndarray:
        """Device memory with children."""
        return self._with_calls(subtree_sums(self.parent, self.self_device_bytes))

    # Numbers that link events.

    @cached_property
    def id(self) -> np.ndarray:
        """Ops and scopes are numbered by start; device work has its correlation; Python calls have 0."""
        events = self.trace.events
        order = time_order(events["start_ns"], events["end_ns"])
        numbered = np.isin(events["kind"][order], _NUMBERED) & (events["device"][order] == 0)
        by_row = np.zeros(len(self.trace) + 1, np.int64)
        by_row[order] = np.where(numbered, np.cumsum(numbered) + (self.trace.first_id - 1), 0)
        launch = np.flatnonzero((events["device"] != 0) | (events["kind"] == Kind.LAUNCH))
        by_row[launch] = events["correlation"][launch]
        result = by_row[self.row]
        outside = self.row < 0
        result[outside] = by_row.max() + 1 + np.arange(outside.sum())
        return result

    @cached_property
    def backward_function(self) -> np.ndarray:
        """Position of the backward function that a row is or is in, or -1."""
        return nearest(self.parent, self.kind == Kind.BACKWARD_FUNCTION)

    @cached_property
    def forward(self) -> np.ndarray:
        """For backward rows, the row of the trace that is their forward op, or -1."""
        return np.append(forward_of(self.trace), -1)[self.row]

    @cached_property
    def stack(self) -> np.ndarray:
        """Index into the trace's stacks; what ran in a backward function has the stack of its forward op.

        PyTorch takes the first op of the sequence number, which may be one that recorded no node at another place.
        """
        own = self.column("stack", -1)
        if not (own >= 0).any():
            return own
        function = self._function_around_calls(self.backward_function)
        events = self.trace.events
        # An op inside a backward function is not a place in the user's program.
        outside = nearest(events["parent"], events["kind"] == Kind.BACKWARD_FUNCTION) < 0
        forward = self.forward[function]
        known = (forward >= 0) & outside[forward]
        return np.where(function < 0, own, np.where(known, events["stack"][forward], -1))

    def _function_around_calls(self, function: np.ndarray) -> np.ndarray:
        """The positions of backward functions, found for Python calls too, such as those of a user's function."""
        calls = np.flatnonzero((self.kind == Kind.PYTHON) | (self.kind == Kind.MODULE))
        rows = np.flatnonzero(self.kind == Kind.BACKWARD_FUNCTION)
        if not len(calls) or not len(rows):
            return function
        around = np.append(function, -1)[self.parent[rows]]
        thread = self.column("thread", 0)
        among = {"thread": thread[rows], "start_ns": self.start_ns[rows], "end_ns": self.end_ns[rows],
                 "parent": np.where(around >= 0, np.searchsorted(rows, around), -1)}
        found = function.copy()
        found[calls] = np.append(rows, -1)[enclosing_rows(among, thread[calls], self.start_ns[calls])]
        return found

    @cached_property
    def flow(self) -> np.ndarray:
        """Number of the arrow between a forward row and its backward function, or 0."""
        begin = self.position[self._home[self.forward]]
        ends = np.flatnonzero((self.kind == Kind.BACKWARD_FUNCTION) & (self.forward >= 0) & (begin >= 0))
        result = np.zeros(len(self), np.int64)
        result[begin[ends]] = result[ends] = np.arange(1, len(ends) + 1)
        return result

    def stack_entries(self, index: int) -> list[str]:
        """A stack of the trace as text, innermost first."""
        if index < 0:
            return []
        return [entry for entry in map(str, self.trace.stack(index)) if _filter_stack_entry(entry)]

    def arguments(self, index: int) -> tuple[Any, ...]:
        """Arguments by their index in the trace; none for -1."""
        return self.trace.inputs[index] if index >= 0 else ()


def outermost_first_uses(trace: Trace) -> np.ndarray:
    """The rows of first uses, without those inside others."""
    events = trace.events
    rows = np.flatnonzero(events["kind"] == Kind.FIRST_USE)
    parent = events["parent"][rows]
    inside = parent >= 0
    inside[inside] = events["kind"][parent[inside]] == Kind.FIRST_USE
    return rows[~inside]
