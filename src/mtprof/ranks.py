"""`Ranks`: the recordings of a job's ranks, a file each, read as one.

One file is open at a time. What is kept of each is small: a row a step and a row a collective. So memory grows with the
number of steps and collectives, not with that of events, and time grows linearly with the number of ranks.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .analysis.intervals import Intervals, covered, intersection, union
from .analysis.steps import LOADER, find_steps
from .errors import BadFile
from .loading import load
from .schema import DEVICE_KINDS, Kind
from .store.arrow import MAGIC
from .trace import Trace
from .views.rows import Rows

__all__ = ["RankRow", "Ranks", "StepRow", "WaitRow"]

_SUFFIXES = (".json", ".json.gz")
_TALKS = ("c10d::", "record_param_comms", "gloo:", "mpi:", "nccl:")  # what names of communication begin with


@dataclass(frozen=True)
class StepRow:
    """One step of one rank."""

    rank: int
    step: int
    duration_us: float
    compute_us: float        # some op ran that does not communicate
    input_us: float          # waiting for the loader
    communication_us: float  # some collective was on its way
    exposed_us: float        # part of it in which nothing was computed

    @property
    def overlap(self) -> float:
        """The part of the communication that is hidden behind compute, 0 to 1."""
        return 1 - self.exposed_us / self.communication_us if self.communication_us else 0.0


@dataclass(frozen=True)
class RankRow:
    """One rank in all its steps, and how long others waited for it."""

    rank: int
    steps: int
    duration_us: float
    compute_us: float
    input_us: float
    communication_us: float
    exposed_us: float
    waited_us: float      # in collectives, until the last rank had come
    waited_for_us: float  # what the others waited, together, where this rank was the last
    last: int             # collectives to which it came last
    why: str              # what it spent more on than the median rank; empty if nobody waited for it


@dataclass(frozen=True)
class WaitRow:
    """One collective: who came last, and what that cost."""

    group: str
    number: int
    operation: str
    last_rank: int
    spread_us: float  # between the first rank to come and the last
    waited_us: float  # of all ranks together


@dataclass(frozen=True)
class _File:
    path: str
    rank: int
    world_size: int
    epoch_ns: int
    start_ns: int
    end_ns: int
    steps: list[StepRow]
    talks: dict[str, np.ndarray]   # group, operation (codes), number, start_ns, end_ns on the clock of the day
    names: list[str]


class Ranks:
    """The recordings in a folder; `problems` says what is wrong with them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self.paths = _traces_in(self.folder)
        if not self.paths:
            raise IsADirectoryError(errno.EISDIR, f"{self.folder} is a directory without traces in it", self.folder)
        self.problems: list[str] = []

    def __repr__(self) -> str:
        return f"<Ranks {self.folder}: {len(self.paths)} files>"

    def __len__(self) -> int:
        return len(self._files)

    @cached_property
    def _files(self) -> list[_File]:
        files: dict[int, _File] = {}
        for number, path in enumerate(self.paths):
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    trace = load(path).trace
            except (BadFile, OSError) as error:
                self.problems.append(f"{os.path.basename(path)} cannot be read: {error}")
                continue
            self.problems += [str(one.message) for one in told]
            one = _read(path, trace, number)
            if one.rank in files:
                raise BadFile(f"{self.folder} holds more than one run: {os.path.basename(files[one.rank].path)} and "
                              f"{os.path.basename(path)} are both of rank {one.rank}")
            files[one.rank] = one
        if not files:
            raise BadFile(f"no file in {self.folder} can be read: {'; '.join(self.problems)}")
        found = [files[rank] for rank in sorted(files)]
        self._check(found)
        return found

    def _check(self, files: list[_File]) -> None:
        sizes = {one.world_size for one in files if one.world_size}
        if len(sizes) > 1:
            raise BadFile(f"{self.folder} holds more than one run: its files speak of {sorted(sizes)} ranks")
        begins = max(one.epoch_ns + one.start_ns for one in files)
        ends = min(one.epoch_ns + one.end_ns for one in files)
        if len(files) > 1 and all(one.epoch_ns for one in files) and begins > ends:
            self.problems.append("the recordings do not overlap in time: the clocks of their machines differ, or they "
                                 "are of different runs; who waits for whom cannot be told")
        for size in sizes:
            missing = sorted(set(range(size)) - {one.rank for one in files})
            if missing:
                self.problems.append(f"no file of rank {', '.join(map(str, missing))} (of {size})")

    # -- answers -----------------------------------------------------------------------------------------------------

    def steps(self) -> Rows[StepRow]:
        """Time by rank and step."""
        return Rows(StepRow, [row for one in self._files for row in one.steps], ("overlap",))

    @cached_property
    def _meetings(self) -> list[tuple[WaitRow, np.ndarray, np.ndarray]]:
        """Collectives that all ranks of a group have: the row, who came, how long each waited."""
        return list(_meetings(self._files))

    def waits(self) -> Rows[WaitRow]:
        """Collectives, those that cost most waiting first."""
        return Rows(WaitRow, sorted((row for row, _, _ in self._meetings), key=lambda row: -row.waited_us))

    def by_rank(self) -> Rows[RankRow]:
        """Each rank, those that others waited for longest first."""
        waited: dict[int, float] = {one.rank: 0.0 for one in self._files}
        caused, last = dict(waited), dict.fromkeys(waited, 0)
        for row, ranks, waits in self._meetings:
            for rank, wait in zip(ranks.tolist(), waits.tolist()):
                waited[rank] += wait / 1000
            caused[row.last_rank] += row.waited_us
            last[row.last_rank] += 1
        sums = {one.rank: _sums(one.steps) for one in self._files}
        median = np.median(np.array(list(sums.values())), axis=0)
        rows = []
        for one in self._files:
            duration, compute, waits_input, communication, exposed = sums[one.rank].tolist()
            more = {"compute": compute - median[1], "input": waits_input - median[2]}
            rest_of_median = median[0] - median[1] - median[2] - median[4]
            more["other"] = duration - compute - waits_input - exposed - rest_of_median
            why = max(more, key=lambda name: more[name]) if caused[one.rank] else ""
            rows.append(RankRow(one.rank, len(one.steps), duration, compute, waits_input, communication, exposed,
                                waited[one.rank], caused[one.rank], last[one.rank],
                                why if why and more[why] > 0 else ""))
        return Rows(RankRow, sorted(rows, key=lambda row: -row.waited_for_us))

    def imbalance(self) -> float:
        """The compute of the rank that computes most, over the mean of all: 1 is balanced."""
        compute = np.array([_sums(one.steps)[1] for one in self._files])
        return float(compute.max() / compute.mean()) if compute.mean() else 1.0

    def gain_if_slowest_were_median_us(self) -> float:
        """What the job would take less, if in each step the slowest rank computed only as long as the median one."""
        table: dict[int, list[float]] = {}
        for one in self._files:
            for row in one.steps:
                table.setdefault(row.step, []).append(row.compute_us + row.input_us)
        return float(sum(max(work) - np.median(work) for work in table.values()))


def _traces_in(folder: str) -> list[str]:
    """Trace files; where there are some of the own format, Chrome traces beside them are the same recordings."""
    own, other = [], []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_file():
            continue
        with open(entry.path, "rb") as file:
            is_own = file.read(len(MAGIC)) == MAGIC
        if is_own:
            own.append(entry.path)
        elif entry.name.endswith(_SUFFIXES):
            other.append(entry.path)
    return own or other


def _sums(rows: list[StepRow]) -> np.ndarray:
    return np.array([[row.duration_us, row.compute_us, row.input_us, row.communication_us, row.exposed_us]
                     for row in rows]).reshape(-1, 5).sum(axis=0)


def _read(path: str, trace: Trace, number: int) -> _File:
    info = trace.metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    talks, events = trace.optional("collectives"), trace.events
    said = talks["rank"][talks["rank"] >= 0]  # each collective says it too, whoever wrote the file
    rank = int(info.get("rank", said[0] if len(said) else number))
    world_size = int(info.get("world_size", talks["group_size"].max(initial=0)))
    row = talks["row"]
    return _File(path, rank, world_size, trace.epoch_ns, trace.start_ns, trace.end_ns,
                 _steps(trace, rank),
                 {"group": talks["group"].copy(), "operation": talks["operation"].copy(),
                  "number": talks["number"].copy(), "size": talks["group_size"].copy(),
                  "start_ns": events["start_ns"][row] + trace.epoch_ns,
                  "end_ns": events["end_ns"][row] + trace.epoch_ns}, list(trace.names))


def _steps(trace: Trace, rank: int) -> list[StepRow]:
    events, names = trace.events, trace.names
    speaks = np.array([name.startswith(_TALKS) or "nccl" in name.lower() for name in names], bool)
    loads = np.array([name.startswith(LOADER) for name in names], bool)
    works = np.isin(events["kind"], [Kind.OP, *DEVICE_KINDS])

    def spans(chosen: np.ndarray) -> Intervals:
        return union(events["start_ns"][chosen], events["end_ns"][chosen])

    name = events["name"]
    busy = spans(works & ~speaks[name])
    talking = np.zeros(len(name), bool)
    talking[trace.optional("collectives")["row"]] = True
    communicates = spans(talking if talking.any() else works & speaks[name])
    hidden = intersection(communicates, busy)
    found = find_steps(trace)
    low, high = found.start_ns, found.end_ns
    parts = busy, spans(loads[name]), communicates, hidden
    compute, waits, talked, both = (covered(part, low, high) for part in parts)
    return [StepRow(rank, number, duration / 1000, work / 1000, wait / 1000, talk / 1000, (talk - twice) / 1000)
            for number, duration, work, wait, talk, twice in zip(
                found.number.tolist(), (high - low).tolist(), compute.tolist(), waits.tolist(), talked.tolist(),
                both.tolist())]


def _meetings(files: list[_File]) -> Iterator[tuple[WaitRow, np.ndarray, np.ndarray]]:
    """Match the collectives of all ranks by group and number: the rank that began last is the one others waited for."""
    codes: dict[str, int] = {}
    parts: list[np.ndarray] = []
    for one in files:
        talks = one.talks
        new = np.array([codes.setdefault(name, len(codes)) for name in one.names] or [0], np.int64)
        rows = np.stack([new[talks["group"]], talks["number"], np.full(len(talks["number"]), one.rank),
                         talks["start_ns"], talks["end_ns"], new[talks["operation"]], talks["size"]])
        parts.append(rows[:, (talks["number"] >= 0) & (talks["size"] > 1)])
    table = np.concatenate(parts, axis=1) if parts else np.zeros((7, 0), np.int64)
    table = table[:, np.lexsort((table[2], table[1], table[0]))]
    if not table.shape[1]:
        return
    words = {code: name for name, code in codes.items()}
    begins = np.flatnonzero(np.append(True, (np.diff(table[0]) != 0) | (np.diff(table[1]) != 0)))
    for first, behind in zip(begins.tolist(), [*begins[1:].tolist(), table.shape[1]]):
        group, number, ranks, start, end, operation, _ = table[:, first:behind]
        if len(ranks) < 2:
            continue
        latest = int(start.max())
        waits = np.maximum(np.minimum(latest, end) - start, 0)
        yield WaitRow(words[int(group[0])], int(number[0]), words[int(operation[0])], int(ranks[start.argmax()]),
                      (latest - int(start.min())) / 1000, int(waits.sum()) / 1000), ranks, waits
