"""The place in the user's code that an event came from."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np

from ..names import has_lines
from ..tables.tree import nearest
from ..trace import Frame, Trace

# Traces name files relative to Python's path, so the first part of the name identifies a library.
_LIBRARIES = frozenset({
    "torch", "mindtorch_v2", "torch_npu", "torchvision", "torchaudio", "torchdata", "numpy", "mtprof", "transformers",
    "accelerate", "diffusers", "timm", "lightning", "pytorch_lightning", "lightning_fabric", "datasets", "deepspeed",
    "pandas", "scipy", "sklearn", "PIL", "tqdm", "einops", "ignite", "fsspec", "pyarrow", "_pytest", "pluggy",
    "IPython", "ipykernel", "viztracer", "pytest",
}) | (frozenset(sys.stdlib_module_names) - {"test", "this", "code", "cmd", "profile", "trace", "types"})
_SOMEWHERE_ELSE = re.compile(r"(^|[/\\])(site-packages|dist-packages|lib[/\\]python3[.\d]*|_as_torch)[/\\]|^<")


@dataclass(frozen=True)
class Place:
    """A line of code, or a function if the line is unknown."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''} ({self.function})"


def is_users(frame: Frame) -> bool:
    """Whether a frame belongs to the user's code instead of a library.

    >>> is_users(Frame("train.py", 3, "main")), is_users(Frame("torch/nn/modules/linear.py", 3, "forward"))
    (True, False)
    """
    if not frame.file or _SOMEWHERE_ELSE.search(frame.file):
        return False
    first = re.split(r"[/\\]", frame.file)[0].removesuffix(".py")
    return first not in _LIBRARIES


class Places:
    """Places of a trace's stacks; -1 or None without a stack, or if none of its frames is the user's.

    If a stack has only library code, as in a benchmark inside a library, its innermost frame is used.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        stacks = trace.optional("stacks")
        users = np.array([is_users(frame) for frame in trace.frames], bool)
        self._frame_of_stack, self._has_line = np.zeros(0, np.int64), np.zeros(0, bool)
        if len(stacks["frame"]):
            own = nearest(stacks["caller"], users[stacks["frame"]])
            self._frame_of_stack = np.where(own >= 0, stacks["frame"][own], -1)
            # An event's line belongs to the innermost frame that is neither built-in nor part of the runtime.
            lined = np.array([has_lines(frame) for frame in trace.frames], bool)
            self._has_line = own == nearest(stacks["caller"], lined[stacks["frame"]])

    def frames(self, stack: np.ndarray) -> np.ndarray:
        """The user's innermost frame for each stack: its number in `trace.frames`, or -1."""
        return np.append(self._frame_of_stack, -1)[stack]

    def lines(self, stack: np.ndarray, line: np.ndarray) -> np.ndarray:
        """The line that ran in that frame, for events with these stacks and lines; 0 if a library is in between."""
        return np.where(np.append(self._has_line, False)[stack], np.maximum(line, 0), 0)

    def at(self, frame: int, line: int = 0) -> Place | None:
        """A frame, by its number, as a place: with the line that ran if it is known, else with that of its function."""
        if frame < 0:
            return None
        found = self.trace.frames[frame]
        # A module begins with line 1, wherever something in it ran.
        return Place(found.file, line or (0 if found.function == "<module>" else found.line), found.function)

    def of_rows(self, rows: np.ndarray, weight: np.ndarray | None = None) -> Place | None:
        """The place that most of some events came from, by number or by weight; a line if most are from one line."""
        stack = self.trace.events["stack"][rows]
        frames = self.frames(stack)
        known = frames >= 0
        if not known.any():
            return None
        weights = np.ones(len(rows)) if weight is None else weight.astype(float)
        frame = int(np.argmax(np.bincount(frames[known], weights[known])))
        here = frames == frame
        lines = self.lines(stack, self.trace.events["line"][rows])[here]
        by_line = np.bincount(lines, weights[here])
        line = int(np.argmax(by_line))
        return self.at(frame, line if by_line[line] > by_line.sum() / 2 else 0)
