"""The blocks of memory in a trace: each has an address, a size, and a stretch of time in which it exists.

An address is used again after its release. So a block is an address with a stretch of time; memory that ops used and
modules held is assigned to blocks by time. A block that was seen but never allocated existed before the recording.
There is one exception: if only ops inside another op saw it, it is scratch memory of a composite op or a converted
number, which is not watched. That is left out, and so is memory without bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..schema import Kind
from ..tables.tree import nearest
from ..trace import Trace

ALWAYS = -1  # the allocation time of a block from before the recording
NEVER = np.iinfo(np.int64).max  # the release time of a block that outlives it


@dataclass(frozen=True)
class Blocks:
    """One row per block, numbered in the order in which they were first seen, and links from other tables to them."""

    address: np.ndarray
    size_bytes: np.ndarray
    device: np.ndarray
    device_index: np.ndarray
    allocated_ns: np.ndarray  # host clock, or ALWAYS
    released_ns: np.ndarray  # host clock, or NEVER
    allocation: np.ndarray  # row of the memory table, or -1
    release: np.ndarray  # row of the memory table, or -1
    of_change: np.ndarray  # per row of the memory table: its block
    of_use: np.ndarray  # per row of the use table: its block, or -1 for memory that is left out
    of_role: np.ndarray  # per row of the role table: its block

    def __len__(self) -> int:
        return len(self.address)

    @property
    def preexisting(self) -> np.ndarray:
        """Which blocks are from before the recording."""
        return self.allocation < 0


def blocks_of(trace: Trace) -> Blocks:
    """Find the blocks of a trace."""
    memory, uses, roles = (trace.optional(name) for name in ("memory", "uses", "roles"))
    counts = (len(memory["time_ns"]), len(uses["row"]), len(roles["time_ns"]))
    changed, used = slice(0, counts[0]), slice(counts[0], counts[0] + counts[1])
    held = slice(counts[0] + counts[1], None)
    address = np.concatenate((memory["address"], uses["address"], roles["address"]))
    time = np.concatenate((memory["time_ns"], trace.events["start_ns"][uses["row"]], roles["time_ns"]))
    size = np.concatenate((np.abs(memory["size_bytes"]), uses["size_bytes"], roles["size_bytes"]))
    is_change = np.arange(len(address)) < counts[0]
    allocates = np.zeros(len(address), bool)
    allocates[changed] = memory["size_bytes"] > 0
    releases = is_change & ~allocates
    tells = np.ones(len(address), bool)
    tells[used] = ~_inside_an_op(trace)[uses["row"]] & (uses["address"] != 0)  # a tensor without elements has no memory
    # At the same instant all keep their order: changes come before the uses of what they allocate, and the uses of an
    # op are in the order of its arguments.
    tie = np.arange(len(address))
    order = np.lexsort((tie, time, address))
    fresh = np.ones(len(order), bool)
    # A block begins at a new address, at an allocation, and after a release.
    fresh[1:] = (np.diff(address[order]) != 0) | allocates[order][1:] | releases[order][:-1]
    stretch = np.empty(len(order), np.int64)
    stretch[order] = np.cumsum(fresh) - 1
    begins = order[np.flatnonzero(fresh)]
    told = np.zeros(len(begins), bool)
    told[stretch[tells]] = True
    by_time = np.lexsort((tie[begins], time[begins]))
    by_time = by_time[told[by_time]]
    number = np.full(len(begins), -1, np.int64)
    number[by_time] = np.arange(len(by_time))
    block = number[stretch]
    begins = begins[by_time]

    total = len(begins)
    device, device_index = np.zeros(total + 1, np.int16), np.full(total + 1, -1, np.int16)
    for part, table in ((used, uses), (held, roles), (changed, memory)):  # for -1, the last entry
        device[block[part]] = table["device"]
        device_index[block[part]] = table["device_index"]
    allocation, release = np.full(total, -1, np.int64), np.full(total, -1, np.int64)
    allocation[block[allocates]] = np.flatnonzero(allocates)
    release[block[releases]] = np.flatnonzero(releases)
    return Blocks(
        address=address[begins], size_bytes=size[begins], device=device[:-1], device_index=device_index[:-1],
        allocated_ns=np.where(allocation >= 0, np.append(memory["time_ns"], ALWAYS)[allocation], ALWAYS),
        released_ns=np.where(release >= 0, np.append(memory["time_ns"], NEVER)[release], NEVER),
        allocation=allocation, release=release,
        of_change=block[changed], of_use=block[used], of_role=block[held],
    )


def runs_as_one(trace: Trace) -> np.ndarray:
    """Which events are ops. The forward of a user's Function, which has no namespace, is a series of ops instead."""
    named = np.array(["::" in name for name in trace.names], bool)
    return (trace.events["kind"] == Kind.OP) & named[trace.events["name"]]


def _inside_an_op(trace: Trace) -> np.ndarray:
    """Which events run inside an op, other than through a backward function."""
    parent, is_op = trace.events["parent"], runs_as_one(trace)
    first = is_op & ~((parent >= 0) & np.append(is_op, False)[parent])
    if not first.any():
        return np.zeros(len(trace), bool)
    return is_op & (nearest(parent, first) != np.arange(len(trace)))
