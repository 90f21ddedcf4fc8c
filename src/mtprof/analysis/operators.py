"""Events in groups: a row per op and, if asked, per input shapes, place in the code, module or step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices import DEVICES, DeviceType
from ..schema import PYTHON_KINDS, Kind
from ..tables.distinct import distinct
from ..views import arguments
from .places import Place

if TYPE_CHECKING:
    from .analysis import Analysis

GROUPINGS = ("shape", "place", "module", "overload")


@dataclass(frozen=True)
class OperatorRow:
    """A group of events. Times in nanoseconds: `self` without what ran inside, `total` with it."""

    name: str
    kind: str  # name of a `schema.Kind` in small letters: "op", "scope", "kernel", …
    device: str  # "cpu", "cuda", "npu", …
    calls: int
    self_ns: int
    total_ns: int  # of nested events of one name, only the outermost counts
    self_share: float  # of the self times of all rows of its device
    self_device_ns: int  # of the work that it launched itself
    device_ns: int
    self_bytes: int  # memory that it allocated and did not release itself
    bytes: int
    flops: int  # 0 without a formula
    shapes: str = ""  # of its inputs, if grouped by them
    module: str = ""
    overload: str = ""
    place: Place | None = None

    @property
    def mean_ns(self) -> float:
        """Total time per call."""
        return self.total_ns / self.calls

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "place": str(self.place) if self.place else None}


def operators(analysis: Analysis, by: Sequence[str] = ()) -> list[OperatorRow]:
    """Rows by self time, largest first; `by` are words of `GROUPINGS`. Python calls and steps are left out."""
    wrong = [word for word in by if word not in GROUPINGS]
    if wrong:
        raise ValueError(f"operators can be grouped by {', '.join(GROUPINGS)}, not by {wrong[0]!r}")
    view, trace = analysis.view, analysis.trace
    events = trace.events
    kept = np.flatnonzero((view.row >= 0) & ~np.isin(view.kind, [*PYTHON_KINDS, Kind.STEP]))
    row = view.row[kept]
    device = view.device[kept].astype(np.int64)
    keys: list[np.ndarray] = [view.name[kept], device, view.kind[kept] == Kind.SCOPE]
    shape_texts: list[str] = []
    frames = lines = np.zeros(0, np.int64)
    if "shape" in by:
        shape_texts, number = _shape_numbers(analysis)
        keys.append(number[events["inputs"][row]])
    if "place" in by:
        frames = analysis.places.frames(events["stack"][row])
        lines = analysis.places.lines(events["stack"][row], events["line"][row])
        keys += [frames, lines]
    if "module" in by:
        keys.append(events["module"][row])
    if "overload" in by:
        keys.append(events["overload"][row])
    group, first = distinct(keys)

    def total(column: np.ndarray) -> list[int]:
        return np.bincount(group, column, len(first)).astype(np.int64).tolist()

    # A call inside a call of the same name is already part of its time.
    outermost = ~_within_same(view.parent, view.name)[kept]
    on_device = np.isin(device, _TIMED)
    elapsed = (view.end_ns - view.start_ns)[kept]
    own = np.where(on_device, elapsed, view.self_cpu_ns[kept])
    devices, which = np.unique(device, return_inverse=True)
    sums = dict(zip(devices.tolist(), np.bincount(which.reshape(-1), own, len(devices)).tolist()))
    columns = {
        "calls": np.bincount(group, minlength=len(first)).tolist(), "self_ns": total(own),
        "total_ns": total(np.where(outermost, elapsed, 0)), "self_device_ns": total(view.self_device_ns[kept]),
        "device_ns": total(view.device_ns[kept]),
        "self_bytes": total((view.self_cpu_bytes + view.self_device_bytes)[kept]),
        "bytes": total((view.cpu_bytes + view.device_bytes)[kept]),
        "flops": total(np.maximum(view.column("flops", 0), 0)[kept]),
    }
    rows = []
    for place, at in enumerate(first.tolist()):
        number = int(device[at])
        own_ns = columns["self_ns"][place]
        rows.append(OperatorRow(
            name=view.names[view.name[kept[at]]], kind=_KIND_WORDS[Kind(int(view.kind[kept[at]]))],
            device=_device_word(number), self_share=float(own_ns / sums[number]) if sums[number] else 0.0,
            **{name: column[place] for name, column in columns.items()},
            shapes=shape_texts[keys[3][at]] if "shape" in by else "",
            module=_text(trace.names, events["module"][row[at]]) if "module" in by else "",
            overload=_text(trace.names, events["overload"][row[at]]) if "overload" in by else "",
            place=analysis.places.at(int(frames[at]), int(lines[at])) if "place" in by else None))
    return sorted(rows, key=lambda found: (-found.self_ns, -found.total_ns, found.name))


_TIMED = [number for number, facts in DEVICES.items() if facts.timed]
_KIND_WORDS: dict[Kind, str] = {kind: kind.name.lower() for kind in Kind}


def _device_word(number: int) -> str:
    known = number in set(DeviceType)
    return (DEVICES[DeviceType(number)].word if known else "") or f"device{number}"


def _text(names: Sequence[str], number: int) -> str:
    return names[number] if number >= 0 else ""


def _shape_numbers(analysis: Analysis) -> tuple[list[str], np.ndarray]:
    """Texts of input shapes, and the text of each entry of the pool of inputs; one more entry for -1."""
    view, known = analysis.view, dict[str, int]()
    texts = [str(arguments.shapes(view.arguments(number))) for number in range(len(analysis.trace.inputs))]
    numbers = [known.setdefault(text, len(known)) for text in [*texts, ""]]
    return list(known), np.array(numbers, np.int64)


def _within_same(parent: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Which events are, at any depth, inside an event of the same name."""
    found = np.zeros(len(parent), bool)
    rows = np.flatnonzero(parent >= 0)
    above = parent[rows]
    while len(rows):
        same = name[above] == name[rows]
        found[rows[same]] = True
        rows, above = rows[~same], parent[above[~same]]
        inside = above >= 0
        rows, above = rows[inside], above[inside]
    return found


