"""Collectives matched between ranks: who came last, how long each rank waited, and what delayed the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .digest import PARTS, Digest

__all__ = ["Meetings"]


@dataclass
class Meetings:
    """A row for each rank at each collective of two ranks or more, sorted by collective; `first` has the first row of
    each collective."""

    group: np.ndarray      # per collective, like all fields up to `first`
    number: np.ndarray
    operation: np.ndarray
    first: np.ndarray
    rank: np.ndarray       # per row, like all fields from here on
    start: np.ndarray
    end: np.ndarray
    parts: np.ndarray      # a column for each of PARTS: what the rank did since its last collective
    words: list[str]

    @classmethod
    def of(cls, files: Sequence[Digest]) -> Meetings:
        """Match them by group and number."""
        codes: dict[str, int] = {}
        columns: dict[str, list[np.ndarray]] = {name: [] for name in ("group", "operation", "number", "start", "end",
                                                                      "rank", *PARTS)}
        for one in files:
            new = np.array([codes.setdefault(word, len(codes)) for word in one.words] or [0], np.int64)
            for name in columns:
                if name == "rank":
                    columns[name].append(np.full(len(one.talks["start"]), one.rank, np.int64))
                else:
                    column = one.talks[name]
                    columns[name].append(new[column] if name in ("group", "operation") else column)
        table = {name: np.concatenate(parts) for name, parts in columns.items()}
        order = np.lexsort((table["rank"], table["number"], table["group"]))
        table = {name: column[order] for name, column in table.items()}
        changes = (np.diff(table["group"]) != 0) | (np.diff(table["number"]) != 0)
        first = np.flatnonzero(np.append(True, changes)) if len(order) else np.zeros(0, np.int64)
        counts = np.diff(np.append(first, len(order)))
        met = np.repeat(counts > 1, counts)
        table = {name: column[met] for name, column in table.items()}
        counts = counts[counts > 1]
        first = np.cumsum(counts) - counts
        return cls(table["group"][first], table["number"][first], table["operation"][first], first, table["rank"],
                   table["start"], table["end"], np.stack([table[part] for part in PARTS], axis=1), list(codes))

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of ranks at each collective."""
        return np.diff(np.append(self.first, len(self.rank)))

    @cached_property
    def latest(self) -> np.ndarray:
        """When the last rank came."""
        return np.maximum.reduceat(self.start, self.first) if len(self) else self.first

    @cached_property
    def last_row(self) -> np.ndarray:
        """The row of the rank that came last."""
        is_last = self.start == np.repeat(self.latest, self.counts)
        rows = np.flatnonzero(is_last)
        which = np.repeat(np.arange(len(self)), self.counts)[rows]
        return rows[np.searchsorted(which, np.arange(len(self)))]

    @cached_property
    def spread(self) -> np.ndarray:
        """The time between the first rank to come and the last."""
        return self.latest - np.minimum.reduceat(self.start, self.first) if len(self) else self.first

    @cached_property
    def transfer(self) -> np.ndarray:
        """The time from the last rank's arrival until the first rank left: the transfer."""
        return np.maximum(np.minimum.reduceat(self.end, self.first) - self.latest, 0) if len(self) else self.first

    @cached_property
    def waits(self) -> np.ndarray:
        """Per row, how long the rank waited until the last one had come."""
        return np.maximum(np.minimum(np.repeat(self.latest, self.counts), self.end) - self.start, 0)

    @cached_property
    def waited(self) -> np.ndarray:
        """Per collective, the waiting of all ranks together."""
        return np.add.reduceat(self.waits, self.first) if len(self) else self.first

    @cached_property
    def excess(self) -> np.ndarray:
        """Per collective, what the last rank did longer than the median rank since the collective before, by PARTS."""
        return self._excess(self.parts)

    @cached_property
    def reason(self) -> np.ndarray:
        """Per collective, what delayed the last rank, as an index in PARTS; -1 if it did nothing longer than others.

        A rank that comes late to a bucket of gradients comes equally late to the next one, which it starts at once. If
        any rank began a collective before the last had come to the one before, that earlier one did not bring the ranks
        together, and what they did before both of them counts.
        """
        if not len(self):
            return self.first
        parts = self.parts.copy()
        earliest = self.latest - self.spread
        apart = (np.diff(self.group) == 0) & (np.diff(self.counts) == 0) & (earliest[1:] < self.latest[:-1])
        for place in (np.flatnonzero(apart) + 1).tolist():
            start, count = int(self.first[place]), int(self.counts[place])
            here, before = slice(start, start + count), slice(start - count, start)
            if np.array_equal(self.rank[here], self.rank[before]):
                parts[here] += parts[before]
        excess = self._excess(parts)
        return np.where(excess.max(axis=1) > 0, excess.argmax(axis=1), -1)

    def _excess(self, parts: np.ndarray) -> np.ndarray:
        """Per collective, what the last rank did longer than the median rank, for these parts."""
        median = np.empty((len(self), len(PARTS)))
        for size in np.unique(self.counts).tolist():  # all groups of one size at a time, as one block
            chosen = np.flatnonzero(self.counts == size)
            rows = self.first[chosen][:, None] + np.arange(size)
            median[chosen] = np.median(parts[rows], axis=1)
        return parts[self.last_row] - median
