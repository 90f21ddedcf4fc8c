"""The part of a step that each event belongs to, which is its colour on every page."""

from __future__ import annotations

import numpy as np

from ..analysis.device.work import is_communication
from ..analysis.steps import LOADER
from ..schema import DEVICE_KINDS, PYTHON_KINDS, Kind
from ..tables.tree import nearest
from ..trace import Trace

# The words of the legend; the page stores a number of this list.
PHASES = ("forward", "backward", "optimizer", "data", "communication", "device", "python", "other")
_SCOPES = {"Optimizer.": "optimizer", LOADER: "data"}


def phases(trace: Trace) -> np.ndarray:
    """A number of `PHASES` for each event. What is inside a backward, an optimizer or a loader belongs to it."""
    events = trace.events
    kind, name = events["kind"], events["name"]
    result = np.full(len(kind), PHASES.index("other"), np.int64)
    result[kind == Kind.OP] = PHASES.index("forward")
    backward = np.isin(kind, (Kind.BACKWARD, Kind.BACKWARD_FUNCTION))
    _fill(result, events["parent"], backward, "backward")
    for prefix, word in _SCOPES.items():
        called = np.array([text.startswith(prefix) for text in trace.names], bool)[name] & (kind == Kind.SCOPE)
        _fill(result, events["parent"], called, word)
    result[np.isin(kind, [*PYTHON_KINDS, Kind.GC])] = PHASES.index("python")
    result[np.isin(kind, list(DEVICE_KINDS))] = PHASES.index("device")
    talks = np.array([is_communication(text) for text in trace.names], bool)[name]
    result[talks & ~np.isin(kind, PYTHON_KINDS)] = PHASES.index("communication")
    result[(kind == Kind.STEP) | (kind == Kind.LAUNCH)] = PHASES.index("other")
    return result


def _fill(result: np.ndarray, parent: np.ndarray, marked: np.ndarray, word: str) -> None:
    """Give a word to marked events and to everything inside them."""
    if marked.any():
        result[nearest(parent, marked) >= 0] = PHASES.index(word)
