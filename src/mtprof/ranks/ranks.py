"""`Ranks`: questions about the recordings of a job's ranks.

Files are read one at a time, and what is kept of each is small: a row per step, collective and module. So memory grows
with steps and collectives, not with events, and time grows linearly with the number of ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadFile
from ..loading import load
from ..views.rows import Rows
from .clocks import one_clock
from .digest import PARTS, Digest
from .files import check, choose_run, digests, traces_in
from .meetings import Meetings

if TYPE_CHECKING:
    from ..recording import Recording

__all__ = ["ModuleRow", "RankRow", "Ranks", "StepRow", "WaitRow"]


@dataclass(frozen=True)
class StepRow:
    """One step of one rank: each moment is compute, input, exposed communication or other."""

    rank: int
    step: int
    duration_us: float
    compute_us: float        # an op ran that does not communicate
    input_us: float          # waiting for the loader
    communication_us: float  # a collective was running
    exposed_us: float        # the part of it without compute

    @property
    def overlap(self) -> float:
        """The part of the communication that compute hides, 0 to 1."""
        return 1 - self.exposed_us / self.communication_us if self.communication_us else 0.0


@dataclass(frozen=True)
class RankRow:
    """One rank over all its steps, and how long others waited for it."""

    rank: int
    steps: int
    duration_us: float
    compute_us: float
    input_us: float
    communication_us: float
    exposed_us: float
    waited_us: float        # in collectives, until the last rank had come
    waited_for_us: float    # total wait of the others where this rank came last
    last: int               # collectives to which it came last
    why: str                # what delayed it before those, compared with the median rank; a word of PARTS
    why_us: float           # how much longer
    clock_error_us: float   # possible error of its times against the first rank's


@dataclass(frozen=True)
class WaitRow:
    """One collective: which rank came last, why, and what that cost."""

    group: str
    number: int
    operation: str
    ranks: int
    last_rank: int
    why: str            # what delayed the last one, a word of PARTS or none
    spread_us: float    # between the first rank to come and the last
    waited_us: float    # of all ranks together
    transfer_us: float  # from when the last had come until the first left


@dataclass(frozen=True)
class ModuleRow:
    """The ops of one module on all ranks."""

    module: str
    mean_us: float
    slowest_us: float
    slowest_rank: int
    imbalance: float  # slowest over mean: 1 is balanced


class Ranks:
    """The recordings in a folder. Nothing is read before the first question.

    >>> import mtprof
    >>> ranks = mtprof.load("traces")  # doctest: +SKIP
    >>> ranks.by_rank()[0].rank, ranks.problems  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str], *, run: str | None = None, workers: int = 1,
                 dask: str | None = None, progress: Callable[[int], None] | None = None) -> None:
        """`run` chooses one of several in the folder; `workers` is a number of processes; `dask` reads with a Dask
        scheduler.

        With `workers` above 1 the calling script needs the guard `if __name__ == "__main__":`, as with every pool.
        """
        self.folder = os.fspath(folder)
        self.paths = traces_in(self.folder)
        self._run, self._workers, self._dask, self._progress = run, workers, dask, progress
        self._problems: list[str] = []

    def __repr__(self) -> str:
        return f"<Ranks {self.folder}: {len(self.paths)} files>"

    def __len__(self) -> int:
        return len(self._files)

    @cached_property
    def _files(self) -> list[Digest]:
        found = digests(self.paths, self._workers, self._dask, self._progress)
        chosen = choose_run(self.folder, found, self._run)
        self._problems = check(found, chosen)
        if not chosen:
            raise BadFile(f"no file in {self.folder} can be read: {'; '.join(self._problems)}")
        self._problems += one_clock(chosen)
        return chosen

    @property
    def problems(self) -> list[str]:
        """What is wrong with the files and the clocks, as sentences."""
        assert self._files
        return self._problems

    @property
    def events(self) -> int:
        """The number of events in the files."""
        return sum(one.events for one in self._files)

    def recording(self, rank: int) -> Recording:
        """One rank's whole recording."""
        for one in self._files:
            if one.rank == rank:
                return load(one.path)
        raise KeyError(f"there is no file of rank {rank}")

    # -- answers -----------------------------------------------------------------------------------------------------

    def steps(self) -> Rows[StepRow]:
        """Time by rank and step."""
        rows = []
        for one in self._files:
            steps = one.steps
            columns = (steps[name] / 1000 for name in ("duration", "compute", "input", "talking", "communication"))
            rows += [StepRow(one.rank, number, *parts) for number, *parts in zip(
                steps["number"].tolist(), *(column.tolist() for column in columns))]
        return Rows(StepRow, rows, ("overlap",))

    @cached_property
    def meetings(self) -> Meetings:
        """Collectives that two ranks or more have, as columns."""
        return Meetings.of(self._files)

    def waits(self, most: int | None = None) -> Rows[WaitRow]:
        """Collectives, those with the most waiting first; at most `most` of them."""
        met = self.meetings
        chosen = np.argsort(-met.waited, kind="stable")[:most]
        return Rows(WaitRow, [
            WaitRow(met.words[met.group[place]], int(met.number[place]), met.words[met.operation[place]],
                    int(met.counts[place]), int(met.rank[met.last_row[place]]), (*PARTS, "")[met.reason[place]],
                    float(met.spread[place] / 1000), float(met.waited[place] / 1000), float(met.transfer[place] / 1000))
            for place in chosen.tolist()])

    def by_rank(self) -> Rows[RankRow]:
        """Each rank, those that others waited for longest first."""
        met = self.meetings
        ranks = np.array([one.rank for one in self._files])
        place = np.searchsorted(ranks, met.rank)
        last = place[met.last_row]
        waited = np.bincount(place, met.waits, len(ranks))
        caused = np.bincount(last, met.waited, len(ranks))
        times = np.bincount(last, minlength=len(ranks))
        reasons = np.stack([np.bincount(last, met.excess[:, part], len(ranks)) for part in range(len(PARTS))], axis=1)
        rows = []
        for number, one in enumerate(self._files):
            total, compute, loading, talking, exposed = (
                float(one.steps[name].sum() / 1000) for name in ("duration", "compute", "input", "talking",
                                                                 "communication"))
            most = int(reasons[number].argmax())
            kept = caused[number] > 0 and reasons[number, most] > 0
            rows.append(RankRow(
                one.rank, len(one.steps["number"]), total, compute, loading, talking, exposed,
                waited_us=float(waited[number] / 1000), waited_for_us=float(caused[number] / 1000),
                last=int(times[number]), why=PARTS[most] if kept else "",
                why_us=float(reasons[number, most] / 1000) if kept else 0.0, clock_error_us=one.error_ns / 1000))
        return Rows(RankRow, sorted(rows, key=lambda row: -row.waited_for_us))

    def modules(self) -> Rows[ModuleRow]:
        """Imbalance by module, most first; none if modules were not recorded."""
        names = sorted({name for one in self._files for name in one.modules})
        rows = []
        for name in names:
            times = np.array([one.modules.get(name, 0) for one in self._files]) / 1000
            slowest, mean = int(times.argmax()), float(times.mean())
            rows.append(ModuleRow(name, mean, float(times[slowest]), self._files[slowest].rank,
                                  float(times[slowest] / mean) if mean else 1.0))
        return Rows(ModuleRow, sorted(rows, key=lambda row: row.mean_us - row.slowest_us))

    def imbalance(self) -> float:
        """The compute of the rank that computes most, over the mean of all: 1 is balanced."""
        compute = np.array([one.steps["compute"].sum() for one in self._files])
        return float(compute.max() / compute.mean()) if compute.mean() else 1.0

    def overlap(self) -> float:
        """The part of all communication that compute hides, 0 to 1."""
        talking, exposed = (sum(int(one.steps[name].sum()) for one in self._files)
                            for name in ("talking", "communication"))
        return 1 - exposed / talking if talking else 0.0

    def gain_if_slowest_were_median_us(self) -> float:
        """The time that the job would save if in each step the slowest rank took only as long as the median one in
        everything except communication."""
        work = [one.steps["duration"] - one.steps["communication"] for one in self._files]
        number, work_ns = np.concatenate([one.steps["number"] for one in self._files]), np.concatenate(work)
        order = np.argsort(number, kind="stable")
        cuts = np.flatnonzero(np.diff(number[order])) + 1
        return float(sum(part.max() - np.median(part) for part in np.split(work_ns[order], cuts) if len(part)) / 1000)
