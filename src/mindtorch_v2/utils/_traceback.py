"""`torch.utils._traceback`: stacks that are kept and shown later."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CapturedTraceback", "format_frame", "format_traceback_short", "report_compile_source_on_error",
           "shorten_filename"]


class _Generated(Exception):
    """Carries the line of a program that was written to a file so that a traceback can show it."""


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Show the source of code that was compiled from a string: frames of it get a file to be read from.

    The code finds its source under `__compile_source__` in its globals.
    """
    try:
        yield
    except Exception as error:
        frames = []
        step = error.__traceback__
        while step is not None:
            source = step.tb_frame.f_globals.get("__compile_source__")
            if step.tb_frame.f_code.co_filename == "<string>" and source is not None:
                step_kept = _frame_with_source(step, source)
                frames.append(step_kept if step_kept is not None else step)
            else:
                frames.append(step)
            step = step.tb_next
        following: TracebackType | None = None
        for one in reversed(frames):
            following = TracebackType(following, one.tb_frame, one.tb_lasti, one.tb_lineno)
        raise error.with_traceback(following) from None


def _frame_with_source(step: TracebackType, source: str) -> TracebackType | None:
    """A traceback like a given one whose code is in a file with the source, in which the same line fails."""
    with tempfile.NamedTemporaryFile(mode="w", delete=False, suffix=".py") as file:
        file.write(source)
    name = step.tb_frame.f_code.co_name
    text = "\n" * (step.tb_lineno - 1) + "raise __error"
    code = compile(text, file.name, "exec").replace(co_name=name, co_firstlineno=step.tb_frame.f_code.co_firstlineno)
    try:
        exec(code, {**step.tb_frame.f_globals, **step.tb_frame.f_locals, "__error": _Generated()})
    except _Generated as made:
        return made.__traceback__.tb_next if made.__traceback__ is not None else None
    return None


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A file's name from where it begins to differ from that of the package's folder."""
    if base is None:
        base = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        prefix = os.path.commonpath([fn, base])
    except ValueError:
        return fn
    return fn[len(prefix) + 1:]


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """A frame in one line."""
    before = f"{frame.line}  # " if line else ""
    return f"{before}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost frame of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """A stack at one moment; its text is made on request."""

    __slots__ = ("frames", "skip", "stack")

    def __init__(self, frames: list[tuple[Any, int]] | None, skip: int = 0) -> None:
        self.frames = frames  # code and line, innermost first
        self.skip = skip
        self.stack: traceback.StackSummary | None = None

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The caller's stack, without the innermost `skip` frames."""
        frame: FrameType | None = sys._getframe(1)
        frames = []
        while frame is not None:
            frames.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return CapturedTraceback(frames, skip)

    def cleanup(self) -> None:
        """Forget the frames."""
        self.frames = None

    def summary(self) -> traceback.StackSummary:
        """The frames, outermost first."""
        if self.stack is None:
            known = [] if self.frames is None else self.frames[self.skip:]
            self.stack = traceback.StackSummary.from_list(
                [(code.co_filename, line, code.co_name, None) for code, line in reversed(known)])
        return self.stack

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        return None, {"frames": None, "skip": self.skip, "stack": self.summary()}

    def format(self) -> list[str]:
        """The lines of the stack as Python prints them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback | None]) -> list[list[str]]:
        """The lines of several."""
        return [[] if one is None else one.format() for one in tbs]
