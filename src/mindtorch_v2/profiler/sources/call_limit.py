"""A limit on the number of Python calls in a recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .call_book import DELEGATES, EXIT

__all__ = ["EXIT", "CallBudget"]


class CallBudget:
    """Counts the calls of all threads. Threads that count at the same time may exceed the limit by a call or two."""

    def __init__(self) -> None:
        self.limit: int | None = None
        self.taken = 0
        self.dropped = 0

    def extend_of(self, calls: list[Any]) -> Callable[[tuple[Any, ...]], None]:
        """The `extend` of a thread's list: beyond the limit, calls are left out together with their exits.

        Exits of calls recorded earlier are kept; otherwise those calls would seem to last until the end.
        """
        keep = calls.extend
        if self.limit is None:
            return keep
        left_out = 0  # open calls that were left out; all are inside recorded ones

        def extend(record: tuple[Any, ...]) -> None:
            nonlocal left_out
            if record[2] == EXIT:
                if left_out:
                    left_out -= 1
                else:
                    keep(record)
            elif self.limit is None or self.taken < self.limit:
                self.taken += 1
                keep(record)
            else:
                left_out += record[2] > DELEGATES  # the others end with the call that they wait for
                self.dropped += 1

        return extend
