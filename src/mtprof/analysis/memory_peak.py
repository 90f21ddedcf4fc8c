"""What held the memory at its peak."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices import device_name
from ..views.memory_timeline import ORDER, totals
from .places import Place

if TYPE_CHECKING:
    from .analysis import Analysis

BEFORE = "(allocated before the recording)"
OUTSIDE = "(outside of ops)"


@dataclass(frozen=True)
class Holder:
    """Memory at the peak with a common property."""

    name: str  # a category, a module's path, an op or a place
    bytes: int
    blocks: int | None  # None for a category, of which only the size is known


@dataclass(frozen=True)
class Block:
    """One allocation that was alive at the peak."""

    bytes: int
    op: str
    module: str
    place: Place | None
    time_ns: int  # host clock
    step: int  # index of the step in which it was made, or -1


@dataclass(frozen=True)
class MemoryPeak:
    """The moment at which a device had most memory in use, and what used it."""

    device: str
    peak_bytes: int
    time_ns: int  # host clock
    step: int  # index of the step, from 0, or -1
    before_bytes: int  # in use when the recording began
    low_bytes: int  # median over steps of the least in use; without steps, the least of the recording
    by_op: list[Holder] = field(default_factory=list)
    by_module: list[Holder] = field(default_factory=list)
    by_place: list[Holder] = field(default_factory=list)
    by_category: list[Holder] = field(default_factory=list)  # empty unless shapes, memory and stacks were recorded
    largest: list[Block] = field(default_factory=list)  # the largest blocks alive then

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found = asdict(self)
        for block, own in zip(found["largest"], self.largest):
            block["place"] = str(own.place) if own.place else None
        return found


def memory_peaks(analysis: Analysis) -> list[MemoryPeak]:
    """The peak of each device with a record of memory, the largest one first; empty without `profile_memory`."""
    memory = analysis.trace.optional("memory")
    if not len(memory["time_ns"]):
        return []
    keys = memory["device"].astype(np.int64) * (1 << 16) + memory["device_index"]
    peaks = []
    for key in np.unique(keys).tolist():
        rows = np.flatnonzero(keys == key)
        name = device_name(int(memory["device"][rows[0]]), int(memory["device_index"][rows[0]]))
        peaks.append(_peak(analysis, name, rows))
    return sorted(peaks, key=lambda peak: -peak.peak_bytes)


def _peak(analysis: Analysis, device: str, rows: np.ndarray) -> MemoryPeak:
    trace, steps = analysis.trace, analysis.steps
    memory = {key: column[rows] for key, column in trace.optional("memory").items()}
    total, time = memory["total_bytes"], memory["time_ns"]
    top = int(np.argmax(total))
    live = _live(memory["address"], memory["size_bytes"], top)
    before = int(total[0] - memory["size_bytes"][0])
    size = memory["size_bytes"][live]
    row = memory["row"][live]
    events = trace.events
    name, module, stack = (np.append(events[key], -1)[row] for key in ("name", "module", "stack"))
    places = _places(analysis, stack, memory["line"][live])
    rest = int(total[top]) - int(size.sum())

    def holders(number: np.ndarray, text: Any, missing: str) -> list[Holder]:
        keys, which = np.unique(number, return_inverse=True)
        sums = np.bincount(which.reshape(-1), size, len(keys)).astype(np.int64).tolist()
        counts = np.bincount(which.reshape(-1), minlength=len(keys)).tolist()
        found = [Holder(text(key) if key >= 0 else missing, total_bytes, count)
                 for key, total_bytes, count in zip(keys.tolist(), sums, counts)]
        if rest > 0:
            found.append(Holder(BEFORE, rest, 0))
        return sorted(found, key=lambda holder: -holder.bytes)

    in_step = steps.of(time)
    lows = [int(total[in_step == number].min()) for number in np.unique(in_step[in_step >= 0]).tolist()]
    largest = []
    for at in np.argsort(-size, kind="stable")[:20].tolist():
        change = live[at]
        largest.append(Block(int(size[at]), trace.names[name[at]] if name[at] >= 0 else OUTSIDE,
                             trace.names[module[at]] if module[at] >= 0 else "", places[at],
                             int(time[change]), int(in_step[change])))
    return MemoryPeak(
        device, int(total[top]), int(time[top]), int(in_step[top]), before,
        int(np.median(lows)) if lows else int(total.min()),
        holders(name, trace.names.__getitem__, OUTSIDE), holders(module, trace.names.__getitem__,
                                                                 "(outside of modules)"),
        holders(*_numbered(places), "(no place known)"),
        _categories(analysis, device), largest)


def _places(analysis: Analysis, stack: np.ndarray, line: np.ndarray) -> list[Place | None]:
    frames = analysis.places.frames(stack).tolist()
    lines = analysis.places.lines(stack, line).tolist()
    return [analysis.places.at(frame, exact) for frame, exact in zip(frames, lines)]


def _numbered(places: list[Place | None]) -> tuple[np.ndarray, Any]:
    """A number for each place, -1 for none, and the text of a number."""
    known: dict[Place, int] = {}
    numbers = [-1 if place is None else known.setdefault(place, len(known)) for place in places]
    texts = [str(place) for place in known]
    return np.array(numbers, np.int64), texts.__getitem__


def _live(address: np.ndarray, size: np.ndarray, top: int) -> np.ndarray:
    """Rows of the allocations that are not released before row `top`."""
    address = address[: top + 1]
    last = np.full(len(address), True)
    order = np.argsort(address, kind="stable")
    same = address[order][1:] == address[order][:-1]
    last[order[:-1][same]] = False
    return np.flatnonzero(last & (size[: top + 1] > 0))


def _categories(analysis: Analysis, device: str) -> list[Holder]:
    if not all(analysis.trace.has(table) for table in ("memory", "uses", "roles")):
        return []
    if (analysis.trace.uses["row"] < 0).any():  # a file from elsewhere, whose uses belong to no op
        return []
    _, by_category = totals(analysis.memory_profile, device)
    if not len(by_category):
        return []
    at = by_category[int(np.argmax(by_category.sum(axis=1)))]
    found = [Holder(category.name.lower() if category else "unknown", int(size), None)
             for category, size in zip(ORDER, at.tolist()) if size]
    return sorted(found, key=lambda holder: -holder.bytes)
