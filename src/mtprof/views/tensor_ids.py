"""Numbers of tensors and of their memory, as PyTorch's event tree has them.

A block of memory has an `allocation_id`, in the order in which blocks are first seen. A tensor's `id` stays the same
when the tensor moves to other memory, and tensors that share memory have the same `id`: blocks that one tensor had one
after the other belong together. Memory that no op, module or optimizer had as a tensor has no `id`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from ..trace import Trace
from .memory_blocks import ALWAYS, Blocks

_NO_MEMORY = 0  # the address of a tensor without elements


@dataclass(frozen=True)
class TensorIds:
    """By block; what has no memory has no block but a number of its own."""

    allocation: list[int]
    tensor: list[int | None]
    nothing: int | None


def tensor_ids(trace: Trace, blocks: Blocks) -> TensorIds:
    """The numbers of a trace's blocks."""
    total = len(blocks)
    used_at = trace.events["start_ns"][trace.optional("uses")["row"]]
    order = np.arange(1, total + 1)
    empty = used_at[trace.optional("uses")["address"] == _NO_MEMORY]
    nothing = None
    if len(empty):
        nothing = int((_first_seen(trace, blocks, used_at) <= empty.min()).sum()) + 1
        order[nothing - 1:] += 1
    used = np.zeros(total + 1, bool)
    used[blocks.of_use] = True  # -1, for memory that is left out, leads to the last entry
    used[blocks.of_role] = True
    used[-1] = False
    group = of_one_tensor(trace, blocks, used)
    _, number = np.unique(group[used[:-1]], return_inverse=True)
    tensor: list[int | None] = [None] * total
    for block, found in zip(np.flatnonzero(used).tolist(), number.tolist(), strict=True):
        tensor[block] = found
    return TensorIds(order.tolist(), tensor, nothing)


def _first_seen(trace: Trace, blocks: Blocks, used_at: np.ndarray) -> np.ndarray:
    """When each block was first seen."""
    result = np.full(len(blocks) + 1, np.iinfo(np.int64).max)
    for block, time in ((blocks.of_change, trace.optional("memory")["time_ns"]), (blocks.of_use, used_at),
                        (blocks.of_role, trace.optional("roles")["time_ns"])):
        np.minimum.at(result, block, time)
    return result[:-1]


def of_one_tensor(trace: Trace, blocks: Blocks, used: np.ndarray) -> np.ndarray:
    """For each block the first of those that one tensor had one after the other, among the used ones."""
    group = list(range(len(blocks)))

    def root(block: int) -> int:
        while group[block] != block:
            block = group[block]
        return block

    places: dict[int, tuple[list[int], list[int]]] = {}
    for block, (address, since) in enumerate(zip(blocks.address.tolist(), blocks.allocated_ns.tolist(), strict=True)):
        times, numbers = places.setdefault(address, ([], []))
        times.append(since if since != ALWAYS else trace.start_ns)
        numbers.append(block)
    left: dict[int, int] = {}  # by tensor: its last block, if it has none now
    table = trace.optional("moves")
    for time, tensor, before, after in zip(*(table[key].tolist() for key in ("time_ns", "tensor", "address",
                                                                            "new_address")), strict=True):
        source = left.get(tensor, -1) if before == _NO_MEMORY else _at(places, before, time)
        if after == _NO_MEMORY:
            left[tensor] = source
            continue
        left.pop(tensor, None)
        target = _at(places, after, time)
        if source >= 0 and target >= 0 and used[source] and used[target]:
            one, other = sorted((root(source), root(target)))
            group[other] = one
    return np.array([root(block) for block in range(len(group))], np.int64)


def _at(places: dict[int, tuple[list[int], list[int]]], address: int, time: int) -> int:
    """The block that was at an address at a time, or -1."""
    times, numbers = places.get(address, ([], []))
    found = bisect_right(times, time)
    return numbers[found - 1] if found else -1
