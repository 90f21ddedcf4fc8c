"""`MemRecordsAcc`: the memory records of a time interval."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import Any


class MemRecordsAcc:
    """Finds memory records by time.

    A record is a sequence whose first item has a method `start_ns()`; records are returned unchanged.
    """

    def __init__(self, mem_records: Sequence[Any]) -> None:
        self._mem_records = mem_records
        times = [record[0].start_ns() for record in mem_records]
        self._indices = sorted(range(len(times)), key=times.__getitem__)
        self._start_nses = [times[index] for index in self._indices]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """Records from `start_ns` to `end_ns`, both included, in order of time."""
        low = bisect.bisect_left(self._start_nses, start_ns)
        high = bisect.bisect_right(self._start_nses, end_ns)
        for index in self._indices[low:high]:
            yield self._mem_records[index]
