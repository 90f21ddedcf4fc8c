"""The place in the user's code that an event came from."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np

from ..tables.tree import nearest
from ..trace import Frame, Trace

# Traces name files relative to Python's path, so that a library is known by the first part of the name.
_LIBRARIES = frozenset({
    "torch", "mindtorch_v2", "torch_npu", "torchvision", "torchaudio", "torchdata", "numpy", "mtprof", "transformers",
    "accelerate", "diffusers", "timm", "lightning", "pytorch_lightning", "lightning_fabric", "datasets", "deepspeed",
    "pandas", "scipy", "sklearn", "PIL", "tqdm", "einops", "ignite", "fsspec", "pyarrow", "_pytest", "pluggy",
    "IPython", "ipykernel", "viztracer", "pytest",
}) | (frozenset(sys.stdlib_module_names) - {"test", "this", "code", "cmd", "profile", "trace", "types"})
_SOMEWHERE_ELSE = re.compile(r"(^|[/\\])(site-packages|dist-packages|lib[/\\]python3[.\d]*|_as_torch)[/\\]|^<")


@dataclass(frozen=True)
class Place:
    """A line of code, or a function where the line is not known."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''} ({self.function})"


def is_users(frame: Frame) -> bool:
    """Whether a frame is of the user's code rather than of a library.

    >>> is_users(Frame("train.py", 3, "main")), is_users(Frame("torch/nn/modules/linear.py", 3, "forward"))
    (True, False)
    """
    if not frame.file or _SOMEWHERE_ELSE.search(frame.file):
        return False
    first = re.split(r"[/\\]", frame.file)[0].removesuffix(".py")
    return first not in _LIBRARIES


class Places:
    """Places of a trace's stacks; answers are -1 or None where there is no stack, or none of its frames is the user's.

    With stacks of mere library code, as those of a benchmark inside a library, the innermost frame stands in.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        stacks = trace.optional("stacks")
        users = np.array([is_users(frame) for frame in trace.frames], bool)
        self._frame_of_stack = np.zeros(0, np.int64)
        if len(stacks["frame"]):
            own = nearest(stacks["caller"], users[stacks["frame"]])
            self._frame_of_stack = np.where(own >= 0, stacks["frame"][own], -1)

    def frames(self, stack: np.ndarray) -> np.ndarray:
        """The innermost frame of the user's for each stack: its number in `trace.frames`, or -1."""
        return np.append(self._frame_of_stack, -1)[stack]

    def at(self, frame: int) -> Place | None:
        """A frame, by its number, as a place."""
        if frame < 0:
            return None
        found = self.trace.frames[frame]
        return Place(found.file, found.line, found.function)

    def of_rows(self, rows: np.ndarray, weight: np.ndarray | None = None) -> Place | None:
        """The place that most of some events came from, by number or by weight."""
        frames = self.frames(self.trace.events["stack"][rows])
        known = frames >= 0
        if not known.any():
            return None
        sums = np.bincount(frames[known], None if weight is None else weight[known])
        return self.at(int(np.argmax(sums)))
