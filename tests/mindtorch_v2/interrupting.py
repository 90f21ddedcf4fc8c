"""Ctrl-C at every line: runs a function again and again, with KeyboardInterrupt raised at each of its lines in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line that runs in files whose name contains one of `parts`.

    With `below`, only lines count that such a file has called, directly or not, or its own.
    """

    def __init__(self, number: int, parts: tuple[str, ...], below: tuple[str, ...] = ()) -> None:
        self.left = number
        self.parts = parts
        self.below = below
        self.place: str | None = None

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function of a call that begins: lines of functions that do not count cost nothing."""
        name = frame.f_code.co_filename
        if self.place is None and any(part in name for part in self.parts) and self.is_below(frame):
            return self.line
        return None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function inside a function whose lines count."""
        if event == "line" and self.place is None:
            self.left -= 1
            if self.left < 0:
                code = frame.f_code
                self.place = f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} ({code.co_name})"
                raise KeyboardInterrupt(self.place)
        return self.line

    def is_below(self, frame: FrameType | None) -> bool:
        """Whether one of the files of `below` is on the stack."""
        while self.below and frame is not None:
            if frame.f_code.co_filename.endswith(self.below):
                return True
            frame = frame.f_back
        return not self.below


def interrupted_everywhere(run: Callable[[], object], *parts: str, most: int = 5000,
                           below: tuple[str, ...] = (), step: int = 1) -> Iterator[str]:
    """Yields the place of each interrupt after `run` was stopped there; ends when `run` came through whole.

    With a `step`, only every so many lines are tried.
    """
    for number in range(0, most, step):
        interrupt = Interrupt(number, parts, below)
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            run()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        if interrupt.place is None:
            return
        yield interrupt.place
    raise AssertionError(f"still interrupted after {most} lines")
