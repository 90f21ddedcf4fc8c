"""Names of events that mean something."""

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
    """The frame that `frame_text` wrote: `model.py(12): forward`, or a bare name."""
    found = _FRAME.match(text)
    return Frame(found[1], int(found[2]), found[3]) if found else Frame("", 0, text)


def has_lines(frame: Frame) -> bool:
    """Whether the line that an event knows may be one of this frame.

    Built-in functions have none, nor have modules, and the runtime's own functions stand where PyTorch's would.
    """
    return bool(frame.file) and not frame.file.startswith(_RUNTIME)


def parse_stack(text: str) -> tuple[Frame, ...]:
    """The frames of a stack on one line, as `Call stack` has it; torch_npu breaks the line behind each."""
    return tuple(map(parse_frame, text.split(";\r\n" if ";\r\n" in text else ";")))
