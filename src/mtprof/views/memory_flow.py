"""Data flow through memory: which step of a program reads, writes, allocates and releases which block.

A step is an outermost op (with all that runs inside), a backward function, or a change of memory outside of those. A
step that writes an existing block gives it its next version; versions distinguish what the same memory holds over time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..schema import Kind
from ..tables.tree import lifted, nearest
from ..trace import Trace
from .memory_blocks import Blocks, runs_as_one

READS, WRITES, ALLOCATES, RELEASES = 1, 2, 4, 8


@dataclass(frozen=True)
class Flow:
    """Steps in order of time, and one edge for each block that a step touches, sorted by step.

    A version of a block has a slot, a number in the order of blocks and versions: `slots[block] + version`.
    """

    row: np.ndarray  # per step: its event, or -1 for a change of memory outside all events
    start_ns: np.ndarray  # per step
    backward: np.ndarray  # per step: whether it is a backward function
    step: np.ndarray  # per edge
    block: np.ndarray  # per edge
    what: np.ndarray  # per edge: READS | WRITES | ALLOCATES | RELEASES
    version: np.ndarray  # per edge: the version that the step finds, 0 for a block that it allocates
    slots: np.ndarray  # per block: its first slot; one more entry at the end

    @property
    def bumps(self) -> np.ndarray:
        """Which edges lead to a new version."""
        return (self.what & (WRITES | ALLOCATES)) == WRITES

    @property
    def enters(self) -> np.ndarray:
        """Which edges are inputs of their step: all except blocks that it allocates itself."""
        return (self.what & ALLOCATES) == 0

    @property
    def leaves(self) -> np.ndarray:
        """Which edges are outputs of their step: blocks that it allocates or changes, and leaves behind."""
        return ((self.what & (WRITES | ALLOCATES)) != 0) & ((self.what & RELEASES) == 0)

    @property
    def passing(self) -> np.ndarray:
        """Which edges are of blocks that exist only within their step."""
        return (self.what & (ALLOCATES | RELEASES)) == (ALLOCATES | RELEASES)

    @property
    def slot_in(self) -> np.ndarray:
        """The slot that an edge finds."""
        return self.slots[self.block] + self.version

    @property
    def slot_out(self) -> np.ndarray:
        """The slot that an edge leaves behind."""
        return self.slot_in + self.bumps


def outermost(trace: Trace) -> np.ndarray:
    """For each event, the row of the outermost op or backward function that it is in, or -1."""
    events = trace.events
    counts = runs_as_one(trace) | (events["kind"] == Kind.BACKWARD_FUNCTION)
    if not counts.any():
        return np.full(len(trace), -1, np.int32)
    first = counts & (lifted(events["parent"], counts) < 0)
    return nearest(events["parent"], first)


def flow_of(trace: Trace, blocks: Blocks) -> Flow:
    """The data flow of a trace."""
    events, memory, uses = trace.events, trace.optional("memory"), trace.optional("uses")
    home = np.append(outermost(trace), -1)
    of_use, of_change = home[uses["row"]], home[memory["row"]]
    loose = np.flatnonzero(of_change < 0)
    rows = np.unique(np.concatenate((of_use[of_use >= 0], of_change[of_change >= 0]))).astype(np.int64)
    start = np.concatenate((events["start_ns"][rows], memory["time_ns"][loose]))
    order = np.argsort(start, kind="stable")
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))

    change_step = np.empty(len(of_change), np.int64)
    change_step[loose] = position[len(rows):]
    inside = of_change >= 0
    change_step[inside] = position[np.searchsorted(rows, of_change[inside])]
    used = (of_use >= 0) & (blocks.of_use >= 0)
    step = np.concatenate((position[np.searchsorted(rows, of_use[used])], change_step))
    block = np.concatenate((blocks.of_use[used], blocks.of_change))
    what = np.concatenate((np.where(uses["written"][used] != 0, READS | WRITES, READS),
                           np.where(memory["size_bytes"] > 0, ALLOCATES, RELEASES)))
    pair, edge = np.unique(step * max(len(blocks), 1) + block, return_inverse=True)
    together = np.zeros(len(pair), np.int64)
    np.bitwise_or.at(together, edge.reshape(-1), what)
    step, block = np.divmod(pair, max(len(blocks), 1))
    version, slots = _versions(block, together, len(blocks))
    row = np.concatenate((rows, np.full(len(loose), -1, np.int64)))[order]
    backward = (row >= 0) & (np.append(events["kind"], Kind.OP)[row] == Kind.BACKWARD_FUNCTION)
    return Flow(row, start[order], backward, step, block, together, version, slots)


def _versions(block: np.ndarray, what: np.ndarray, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """The version that each edge finds, and the first slot of each block."""
    bumps = ((what & (WRITES | ALLOCATES)) == WRITES).astype(np.int64)
    order = np.argsort(block, kind="stable")  # within a block the edges stay in order of time
    before = np.cumsum(bumps[order]) - bumps[order]
    first = np.searchsorted(block[order], block[order])
    version = np.empty(len(block), np.int64)
    version[order] = before - before[first]
    counts = 1 + np.bincount(block, bumps, minlength=blocks).astype(np.int64)
    return version, np.concatenate(([0], np.cumsum(counts)))
