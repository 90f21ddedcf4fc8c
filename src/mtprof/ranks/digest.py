"""`digest`: what is kept of a rank's recording. It is small, and all answers are made from it.

Only this code reads events, so it is what a pool of processes or Dask runs, once per file.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field

import numpy as np

from ..analysis.intervals import Intervals, covered, intersection, union
from ..analysis.steps import LOADER, find_steps
from ..errors import BadFile
from ..loading import load
from ..schema import DEVICE_KINDS, Kind
from ..trace import Trace

__all__ = ["PARTS", "Digest", "digest"]

PARTS = ("compute", "input", "communication", "other")  # of a stretch of time; each moment is in one part
_TALKS = ("c10d::", "record_param_comms", "gloo:", "mpi:", "nccl:")  # beginnings of names of communication
_OUTSIDE = "(outside of modules)"
_NAMED_BY_RANK = re.compile(r"rank[-_]?(\d+)", re.IGNORECASE)


@dataclass
class Digest:
    """What is kept of a file. Times are in nanoseconds of the rank's own clock."""

    path: str
    error: str = ""           # why the file cannot be read; then the rest is empty
    problems: list[str] = field(default_factory=list)
    rank: int = -1
    world_size: int = 0
    run: str = ""             # the same for all files of a job, if the recording knows it
    epoch_ns: int = 0         # what to add to get the time of day
    offset_ns: int | None = None  # what to add to get the clock of the reference rank, if it was compared
    error_ns: int = 0         # the possible error of that
    start_ns: int = 0
    end_ns: int = 0
    events: int = 0
    steps: dict[str, np.ndarray] = field(default_factory=dict)  # number, start, duration, the parts, talking
    talks: dict[str, np.ndarray] = field(default_factory=dict)  # group, operation, number, size, start, end, the parts
    words: list[str] = field(default_factory=list)              # the words that groups and operations refer to
    modules: dict[str, int] = field(default_factory=dict)       # time of the modules' own ops

    @property
    def name(self) -> str:
        """The file's name."""
        return os.path.basename(self.path)


def digest(path: str, number: int) -> Digest:
    """Read a file. `number` is its index in the folder, used as its rank if nothing else states it."""
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            trace = load(path).trace
            found = _digest(path, trace, number)
    except (BadFile, OSError) as error:
        return Digest(path, error=str(error))
    found.problems = [str(one.message) for one in told]
    return found


def _digest(path: str, trace: Trace, number: int) -> Digest:
    info, clock = (trace.metadata.get(key) for key in ("distributedInfo", "rank_clock"))
    info, clock = (value if isinstance(value, dict) else {} for value in (info, clock))
    talks, events = trace.optional("collectives"), trace.events
    said = talks["rank"][talks["rank"] >= 0]  # each collective states it too, in files of any writer
    named = _NAMED_BY_RANK.search(os.path.basename(path))
    rank = int(info.get("rank", said[0] if len(said) else named[1] if named else number))
    offset = clock.get("offset_ns")
    timeline = Timeline(trace)
    counted = np.flatnonzero((talks["number"] >= 0) & (talks["group_size"] > 1))
    row = talks["row"][counted]
    words = sorted({*talks["group"][counted].tolist(), *talks["operation"][counted].tolist()})
    places = np.zeros(max(words, default=0) + 1, np.int32)
    places[words] = np.arange(len(words))
    kept = {"group": places[talks["group"][counted]], "operation": places[talks["operation"][counted]],
            "number": talks["number"][counted], "size": talks["group_size"][counted],
            "start": events["start_ns"][row], "end": events["end_ns"][row]}
    order = np.lexsort((kept["number"], kept["group"]))
    kept = {name: column[order] for name, column in kept.items()}
    kept |= timeline.parts(_since_last(kept, trace.start_ns), kept["start"])
    found = find_steps(trace)
    steps = {"number": found.number, "start": found.start_ns, "duration": found.end_ns - found.start_ns,
             **timeline.parts(found.start_ns, found.end_ns),
             "talking": covered(timeline.talking, found.start_ns, found.end_ns)}
    return Digest(path, rank=rank, world_size=int(info.get("world_size", talks["group_size"].max(initial=0))),
                  run=str(clock.get("run", "")), epoch_ns=trace.epoch_ns,
                  offset_ns=int(offset) if isinstance(offset, int) else None, error_ns=int(clock.get("error_ns", 0)),
                  start_ns=trace.start_ns, end_ns=trace.end_ns, events=len(trace),
                  steps={name: np.array(column, np.int64) for name, column in steps.items()},
                  talks={name: np.array(column, np.int64) for name, column in kept.items()},
                  words=[trace.names[word] for word in words], modules=_modules(trace, timeline.works))


def _since_last(talks: dict[str, np.ndarray], begin: int) -> np.ndarray:
    """When a rank started towards each collective: the end of the one before in its group, or its start if both ran at
    once."""
    if not len(talks["start"]):
        return talks["start"]
    first = np.append(True, np.diff(talks["group"]) != 0)
    before_start, before_end = (np.concatenate(([begin], talks[name][:-1])) for name in ("start", "end"))
    low = np.where(before_end <= talks["start"], before_end, before_start)
    return np.minimum(np.where(first, begin, low), talks["start"])


class Timeline:
    """When a rank computed, waited for input and communicated."""

    def __init__(self, trace: Trace) -> None:
        events, names = trace.events, list(trace.names)
        name = events["name"]
        speaks = np.array([text.startswith(_TALKS) or "nccl" in text.lower() for text in names], bool)[name]
        loads = np.array([text.startswith(LOADER) for text in names], bool)[name]
        self.works = np.isin(events["kind"], [Kind.OP, *DEVICE_KINDS]) & ~speaks
        talking = np.zeros(len(name), bool)
        talking[trace.optional("collectives")["row"]] = True
        if not talking.any():
            talking = speaks & np.isin(events["kind"], [Kind.OP, *DEVICE_KINDS])

        def spans(chosen: np.ndarray) -> Intervals:
            return union(events["start_ns"][chosen], events["end_ns"][chosen])

        self.computing, self.loading, self.talking = spans(self.works), spans(loads), spans(talking)
        self._loading_computes = intersection(self.loading, self.computing)
        self._hidden = intersection(self.talking, self.computing)
        self._loading_talks = intersection(self.talking, self.loading)
        self._all_three = intersection(self._hidden, self.loading)

    def parts(self, low: np.ndarray, high: np.ndarray) -> dict[str, np.ndarray]:
        """For each window: computing, else waiting for input, else communicating, or none of these.

        What the loader computes in this process counts as input.
        """
        input_ns = covered(self.loading, low, high)
        compute = covered(self.computing, low, high) - covered(self._loading_computes, low, high)
        exposed = (covered(self.talking, low, high) - covered(self._hidden, low, high)
                   - covered(self._loading_talks, low, high) + covered(self._all_three, low, high))
        return {"compute": compute, "input": input_ns, "communication": exposed,
                "other": high - low - compute - input_ns - exposed}


def _modules(trace: Trace, works: np.ndarray) -> dict[str, int]:
    """Time of the ops of each module, without nested ops; nothing if modules were not recorded."""
    module = trace.events["module"]
    if not (module >= 0).any():
        return {}
    chosen = np.flatnonzero(works)
    sums = np.bincount(module[chosen] + 1, trace.self_ns()[chosen])
    return {_OUTSIDE if place == 0 else trace.names[place - 1]: int(sums[place])
            for place in np.flatnonzero(sums).tolist()}
