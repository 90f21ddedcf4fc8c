"""Memory that grows from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...devices import device_name
from ..figures import size_text
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

FEWEST_STEPS = 6
LEAST_BYTES = 1 << 20  # in a step
LEAST_SHARE = 0.1  # of what was in use after the second step, over the recording


def look(analysis: Analysis) -> Result:
    """The least memory in use within each step. It returns to the same value if the program frees what it allocates."""
    memory, steps = analysis.trace.optional("memory"), analysis.steps
    if not len(memory["time_ns"]):
        return Unknown("memory was not recorded (profile_memory=True)")
    if not steps.known or len(steps) < FEWEST_STEPS:
        return Unknown(f"{len(steps) if steps.known else 'no'} steps in the recording; {FEWEST_STEPS} are needed")
    worst: tuple[float, int, np.ndarray] | None = None
    pairs = memory["device"].astype(np.int64) * 1000 + memory["device_index"]
    for pair in np.unique(pairs).tolist():
        lows = _lows(analysis, pairs == pair)
        if len(lows) >= FEWEST_STEPS:
            growth = np.diff(lows)
            rate = float(np.median(growth))
            if (growth > 0).mean() > 0.8 and (worst is None or rate > worst[0]):
                worst = (rate, pair, lows)
    if worst is None:
        return Clean("memory returns to the same level after each step")
    rate, pair, lows = worst
    grown = int(lows[-1] - lows[0])
    if rate < LEAST_BYTES or grown < LEAST_SHARE * max(int(lows[0]), 1):
        return Clean(f"memory grows by {size_text(rate)} a step, {size_text(grown)} in all")
    device = device_name((pair + 1) // 1000, -1)
    rows = _kept_rows(analysis, pairs == pair)
    place = analysis.places.of_rows(rows[0], rows[1].astype(float)) if len(rows[0]) else None
    return Finding("memory-growth", f"Memory grows by {size_text(rate)} every step and is not freed.",
                   [Figure("per step", rate, "bytes"), Figure("over the recording", grown, "bytes"),
                    Figure("steps", len(lows), "count"), Figure("device", device, "text")],
                   "Look for what is kept from step to step: a list of losses or outputs with their graph (append "
                   "`loss.item()` or `.detach()`), a cache without a limit, `retain_graph=True`.",
                   place, saves_bytes=grown, page="memory")


def _lows(analysis: Analysis, rows: np.ndarray) -> np.ndarray:
    """The least memory in use in each step after the first one, in which parameters' gradients and state are made."""
    memory = analysis.trace.optional("memory")
    step = analysis.steps.of(memory["time_ns"][rows])
    total = memory["total_bytes"][rows]
    return np.array([int(total[step == number].min()) for number in np.unique(step[step >= 1]).tolist()], np.int64)


def _kept_rows(analysis: Analysis, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Events that allocated what was not released until the end of the last step, after the first step and before the
    last one; and the sizes.
    """
    memory, steps = analysis.trace.optional("memory"), analysis.steps
    rows = np.flatnonzero(rows & (memory["time_ns"] < steps.end_ns[-1]))
    address, size = memory["address"][rows], memory["size_bytes"][rows]
    last = np.full(len(rows), True)
    order = np.argsort(address, kind="stable")
    same = address[order][1:] == address[order][:-1]
    last[order[:-1][same]] = False
    step = steps.of(memory["time_ns"][rows])
    kept = last & (size > 0) & (step >= 1) & (step < len(steps) - 1) & (memory["row"][rows] >= 0)
    return memory["row"][rows][kept], size[kept]
