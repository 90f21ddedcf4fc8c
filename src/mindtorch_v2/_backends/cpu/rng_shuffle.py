"""The two shuffles behind `randperm`, with all their swaps done at once.

A swap depends on those before it, but only through chains "what lies here came from there", and chains can be followed
for all items together, doubling the distance each time. Both shuffles have a random target for every step.
"""

from __future__ import annotations

import numpy as np

__all__ = ["shuffle_forward", "shuffle_inside_out"]

LOW_HALF = np.int64(0xFFFFFFFF)
# So few items are swapped faster one by one than by following chains.
FEW = 128


def shuffle_forward(target: np.ndarray) -> np.ndarray:
    """What 0 .. n-1 becomes when, for i = 0, 1, ..., the items at i and at target[i] >= i are swapped.

    Step i takes for good what lies at target[i], and leaves there what lay at i. So the origin of i, what lies at i
    before step i, is the origin of the last earlier step that aimed at i, or else i. And step i takes the origin of the
    last earlier step that aimed at the same place, or else target[i].
    """
    if target.size <= FEW:
        order = list(range(target.size))
        for i, j in enumerate(target.tolist()):
            order[i], order[j] = order[j], order[i]
        return np.array(order, np.int64)
    previous, last = _aims(target)
    steps = np.arange(target.size, dtype=previous.dtype)
    # Step i may itself be the last that aimed at i; it then moves nothing, and the one before it counts.
    parent = np.where(target == steps, previous, last)
    origin = _follow(np.where(parent >= 0, parent, steps))
    return np.where(previous >= 0, origin[previous], target)


def shuffle_inside_out(target: np.ndarray) -> np.ndarray:
    """What an empty array becomes when, for i = 0, 1, ..., item i goes to target[i] <= i, and what lay there to i.

    A place ends with the last step that aimed at it. If none did, it keeps what its own step brought: the last earlier
    step that aimed at the same place as that one, or else what the step of that place brought.
    """
    previous, last = _aims(target)
    steps = np.arange(target.size, dtype=previous.dtype)
    ending = _follow(np.where(previous >= 0, steps, target).astype(previous.dtype))
    brought = np.where(previous[ending] >= 0, previous[ending], ending)
    return np.where(last >= 0, last, brought)


def _aims(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each step the last earlier one with the same target, for each place the last step that aimed at it, or -1."""
    # (target, step) packed into single integers: a plain sort puts steps with the same target side by side, in order.
    keys = np.sort((target << np.int64(32)) | np.arange(target.size, dtype=np.int64))
    # Narrow positions where they do: what follows is bound by memory.
    kind = np.int32 if target.size <= 1 << 31 else np.int64
    place, step = (keys >> np.int64(32)).astype(kind), (keys & LOW_HALF).astype(kind)
    again = np.flatnonzero(place[1:] == place[:-1])
    previous, last = np.full(target.size, -1, kind), np.full(target.size, -1, kind)
    previous[step[again + 1]] = step[again]
    last[place] = step  # of several steps at one place the last one stays: they are in order
    return previous, last


def _follow(parent: np.ndarray) -> np.ndarray:
    """The end of the chain i, parent[i], parent[parent[i]], ..., for every i; an end is its own parent."""
    further = parent[parent]
    open_ends = np.flatnonzero(further != parent)
    parent = further
    while open_ends.size:
        # Fewer and fewer chains are not at their end yet. All of them advance before one is written.
        here = parent[open_ends]
        further = parent[here]
        moved = further != here
        open_ends = open_ends[moved]
        parent[open_ends] = further[moved]
    return parent
