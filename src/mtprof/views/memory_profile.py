"""Memory over time with its categories: what `prof._memory_profile()` gives."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..devices import device_name
from ..tables.distinct import distinct
from ..trace import Trace
from .event_fields import Values
from .memory_blocks import Blocks, blocks_of
from .memory_categories import CATEGORIES, Category, categories_of
from .memory_flow import ALLOCATES, RELEASES, Flow, flow_of
from .memory_flow_nodes import DataFlowGraph, data_flow_graph
from .memory_key import Key, Storage, TensorKey
from .tensor_ids import TensorIds, tensor_ids

BEFORE = -1  # the time of blocks from before the recording


class Action(enum.Enum):
    """What happened to memory."""

    PREEXISTING = enum.auto()
    CREATE = enum.auto()
    INCREMENT_VERSION = enum.auto()
    DESTROY = enum.auto()


@dataclass(frozen=True)
class Changes:
    """The timeline as columns, in order of time."""

    time_ns: np.ndarray  # nanoseconds since 1970, or BEFORE
    action: np.ndarray  # values of Action
    block: np.ndarray
    version: np.ndarray  # the version that ends, for INCREMENT_VERSION and DESTROY; otherwise the one that begins
    size_bytes: np.ndarray
    category: np.ndarray  # of that version
    next_category: np.ndarray  # of the version after it, for INCREMENT_VERSION


class Categories:
    """Categories by key and version."""

    def __init__(self, keys: list[TensorKey], slots: np.ndarray, values: np.ndarray) -> None:
        self._block = {key.storage.allocation_id: block for block, key in enumerate(keys)}
        self._slots = slots.tolist()
        self._values = values.tolist()

    def get(self, key: Key, version: int) -> Category | None:
        """The category of a version of a block; None if unknown, as for memory that no op had as a tensor."""
        if not isinstance(key, TensorKey):
            return None
        block = self._block[key.storage.allocation_id]
        slot = self._slots[block] + version
        return CATEGORIES[self._values[slot]] if slot < self._slots[block + 1] else None


class MemoryProfile:
    """The memory of a recording over time, with its categories.

    `trace` must have been recorded with `record_shapes`, `profile_memory` and `with_stack`.
    """

    def __init__(self, trace: Trace, values: Values | None = None) -> None:
        self.trace = trace
        self.values = values or Values()
        self.blocks: Blocks = blocks_of(trace)
        self.flow: Flow = flow_of(trace, self.blocks)
        self.slot_categories = categories_of(trace, self.blocks, self.flow)

    @cached_property
    def device_names(self) -> list[str]:
        """The device of each block."""
        kinds, indices = self.blocks.device, self.blocks.device_index
        which, first = distinct([kinds, indices])
        names = [device_name(kind, index) for kind, index in zip(kinds[first].tolist(), indices[first].tolist())]
        return [names[i] for i in which.tolist()]

    @cached_property
    def keys(self) -> list[TensorKey]:
        """The key of each block. Memory that no op had as a tensor has a number after all others."""
        devices = {name: self.values.device(name) for name in set(self.device_names)}
        further = itertools.count(1 + max((number for number in self._ids.tensor if number is not None), default=-1))
        return [TensorKey(devices[name], next(further) if number is None else number, Storage(address, allocation))
                for name, address, number, allocation in zip(self.device_names, self.blocks.address.tolist(),
                                                             self._ids.tensor, self._ids.allocation, strict=True)]

    @cached_property
    def _ids(self) -> TensorIds:
        return tensor_ids(self.trace, self.blocks)

    @cached_property
    def _told_keys(self) -> list[Key]:
        """The keys in PyTorch's form: for memory that no op had as a tensor only the device."""
        return [key if number is not None else Key(key.device)
                for key, number in zip(self.keys, self._ids.tensor, strict=True)]

    @cached_property
    def changes(self) -> Changes:
        """All changes of memory in order of time."""
        blocks, flow = self.blocks, self.flow
        before = np.flatnonzero(blocks.preexisting)
        bumps = np.flatnonzero(flow.bumps)
        created = np.flatnonzero(flow.what & ALLOCATES)
        destroyed = np.flatnonzero(flow.what & RELEASES)
        last = np.diff(flow.slots)[flow.block[destroyed]] - 1
        block = np.concatenate((before, flow.block[created], flow.block[bumps], flow.block[destroyed]))
        nothing = np.zeros(len(before) + len(created), np.int64)
        version = np.concatenate((nothing, flow.version[bumps], last))
        time = np.concatenate((
            np.full(len(before), BEFORE), blocks.allocated_ns[flow.block[created]] + self.trace.epoch_ns,
            flow.start_ns[flow.step[bumps]] + self.trace.epoch_ns,
            blocks.released_ns[flow.block[destroyed]] + self.trace.epoch_ns))
        action = np.repeat([a.value for a in Action], [len(before), len(created), len(bumps), len(destroyed)])
        order = np.lexsort((action, time))
        slot = flow.slots[block] + version
        following = np.append(self.slot_categories, 0)[np.where(action == Action.INCREMENT_VERSION.value, slot + 1, -1)]
        return Changes(time[order], action[order], block[order], version[order], blocks.size_bytes[block][order],
                       self.slot_categories[slot][order], following[order])

    @property
    def timeline(self) -> tuple[tuple[int, Action, tuple[Key, int], int], ...]:
        """`(time in nanoseconds, action, (key, version), bytes)` in order of time."""
        actions = (None, *Action)
        changes = self.changes
        columns = (changes.time_ns, changes.action, changes.block, changes.version, changes.size_bytes)
        return tuple((time, actions[action], (self._told_keys[block], version), size)
                     for time, action, block, version, size in zip(*(column.tolist() for column in columns)))

    @cached_property
    def categories(self) -> Categories:
        """The category of each version of each block."""
        return Categories(self.keys, self.flow.slots, self.slot_categories)

    @property
    def _categories(self) -> Categories:
        return self.categories

    @cached_property
    def _data_flow_graph(self) -> DataFlowGraph:
        return data_flow_graph(self.trace, self.flow, self._told_keys)

    @cached_property
    def _size_map(self) -> dict[TensorKey, int]:
        sizes = zip(self._told_keys, self.blocks.size_bytes.tolist())
        return {key: size for key, size in sizes if isinstance(key, TensorKey)}

    def _is_gradient(self, key: TensorKey, version: int) -> bool:
        return self.categories.get(key, version) is Category.GRADIENT

    def _category_snapshot(self) -> dict[tuple[TensorKey, int], Category | None]:
        return dict(self._snapshot())

    def _snapshot(self) -> Iterator[tuple[tuple[TensorKey, int], Category | None]]:
        slots = self.flow.slots.tolist()
        values = self.slot_categories.tolist()
        for key, begin, end in zip(self._told_keys, slots[:-1], slots[1:]):
            if not isinstance(key, TensorKey):
                continue
            for version in range(end - begin):
                yield (key, version), CATEGORIES[values[begin + version]]
