"""A bound on the number of Python calls that a recording keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .call_book import DELEGATES, EXIT

__all__ = ["EXIT", "CallBudget"]


class CallBudget:
    """Counts the calls of all threads. Threads that count at the same time may go a call or two beyond the limit."""

    def __init__(self) -> None:
        self.limit: int | None = None
        self.taken = 0
        self.dropped = 0

    def extend_of(self, calls: list[Any]) -> Callable[[tuple[Any, ...]], None]:
        """The `extend` of a thread's list: from the limit on, calls are left out, each with its exit.

        Exits of calls that were noted before are kept, or those calls would seem to last until the end.
        """
        keep = calls.extend
        if self.limit is None:
            return keep
        left_out = 0  # calls that are open and were left out: all inside those that were noted

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
                left_out += record[2] > DELEGATES  # the end of others is that of the call that they wait for
                self.dropped += 1

        return extend
