"""Event names with a meaning."""

from __future__ import annotations

import re

from .trace import Frame

ENGINE_PREFIX = "autograd::engine::evaluate_function: "
MODULE_PREFIX = "nn.Module: "
GC_NAME = "Python GC"
FIRST_USE_PREFIX = "first use of "
_RUNTIME = "mindtorch_v2/"  # the files of the runtime that records lines

_STEP = re.compile(r"ProfilerStep#(\d{1,18})\Z")
_FRAME = re.compile(r"(.*)\((-?\d{1,18})\): (.*)\Z", re.DOTALL)


def step_number(name: str) -> int | None:
    """3 for `ProfilerStep#3`, None for other names."""
    found = _STEP.match(name)
    return int(found[1]) if found else None


def frame_text(frame: Frame) -> str:
    """A frame as Kineto names it; a builtin has a name and no file."""
    return frame.function if not frame.file and not frame.line else str(frame)


def parse_frame(text: str) -> Frame:
    """Parse what `frame_text` wrote: `model.py(12): forward`, or a bare name."""
    found = _FRAME.match(text)
    return Frame(found[1], int(found[2]), found[3]) if found else Frame("", 0, text)


def has_lines(frame: Frame) -> bool:
    """Whether the line that an event knows may be a line of this frame.

    Built-in functions and modules have no line. The runtime's own functions appear in place of PyTorch's, which have
    none.
    """
    return bool(frame.file) and not frame.file.startswith(_RUNTIME)


def parse_stack(text: str) -> tuple[Frame, ...]:
    """The frames of a stack on one line, as in `Call stack`; torch_npu breaks the line after each."""
    return tuple(map(parse_frame, text.split(";\r\n" if ";\r\n" in text else ";")))
