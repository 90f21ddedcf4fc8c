"""The page of a job's ranks: which is slow, when, and which waits for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.figures import time_text
from ..ranks import Ranks

MOST_CELLS = 200_000  # of the map; beyond that, cells are joined and show their longest
MOST_ROWS = 2000
# Whole steps are alike on all ranks, because ranks wait for each other; their own work differs.
_MEASURES = {"behind": "longer than the median rank, without communication", "own": "everything except communication",
             "duration": "whole step", "compute": "compute", "input": "input", "communication": "exposed communication",
             "other": "other"}


def ranks_of(ranks: Ranks) -> dict[str, Any]:
    """The content of the page; times in nanoseconds."""
    rows = ranks.by_rank()
    return {
        "count": len(ranks), "events": ranks.events, "problems": ranks.problems, "imbalance": ranks.imbalance(),
        "overlap": ranks.overlap(), "gain": ranks.gain_if_slowest_were_median_us() * 1000,
        "headline": _headline(ranks),
        "ranks": _nanoseconds(rows.to_dict()[:MOST_ROWS]), "waits": _nanoseconds(ranks.waits(MOST_ROWS).to_dict()),
        "modules": _nanoseconds(ranks.modules().to_dict()[:MOST_ROWS]), "map": _map(ranks)}


def _headline(ranks: Ranks) -> str:
    first = ranks.by_rank()[0]
    if not first.waited_for_us:
        return "No rank waited for another."
    spent = "outside of ops, input and communication" if first.why == "other" else f"on {first.why}"
    more = time_text(first.why_us * 1000)
    why = f", because it spent {more} more {spent} than the median rank" if first.why else ""
    return (f"The others waited {time_text(first.waited_for_us * 1000)} in total for rank {first.rank}, which came "
            f"last to {first.last:,} of {len(ranks.meetings):,} collectives{why}.")


def _nanoseconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key[:-3] + "_ns" if key.endswith("_us") else key: value * 1000 if key.endswith("_us") else value
             for key, value in row.items()} for row in rows]


def _map(ranks: Ranks) -> dict[str, Any]:
    """Steps across, ranks down, for each measure."""
    files = ranks._files
    numbers = np.unique(np.concatenate([one.steps["number"] for one in files]))
    ranks_joined, steps_joined = _joined(len(files), len(numbers))
    shape = (-(-len(files) // ranks_joined), -(-len(numbers) // steps_joined))
    values = {}
    places = [np.searchsorted(numbers, one.steps["number"]) for one in files]
    own = [one.steps["duration"] - one.steps["communication"] for one in files]
    median = _medians(places, own, len(numbers))
    for measure in _MEASURES:
        whole = np.zeros(shape, np.int64)
        for row, (one, place) in enumerate(zip(files, places)):
            times = (one.steps[measure] if measure in one.steps else own[row] if measure == "own"
                     else np.maximum(own[row] - median[place], 0))
            np.maximum.at(whole[row // ranks_joined], place // steps_joined, times)
        values[measure] = whole.tolist()
    return {"measures": _MEASURES, "values": values, "ranks": [one.rank for one in files][::ranks_joined],
            "steps": numbers[::steps_joined].tolist(), "ranks_joined": ranks_joined, "steps_joined": steps_joined}


def _medians(places: list[np.ndarray], times: list[np.ndarray], steps: int) -> np.ndarray:
    """By step, the median of all ranks that have it."""
    place, time = np.concatenate(places), np.concatenate(times)
    order = np.argsort(place, kind="stable")
    parts = np.split(time[order], np.cumsum(np.bincount(place, minlength=steps))[:-1])
    return np.array([int(np.median(part)) if len(part) else 0 for part in parts])


def _joined(rows: int, columns: int) -> tuple[int, int]:
    """How many ranks and steps become one cell, so that there are not too many."""
    by_rank = by_step = 1
    while -(-rows // by_rank) * -(-columns // by_step) * len(_MEASURES) > MOST_CELLS:
        if columns // by_step >= rows // by_rank:
            by_step += 1
        else:
            by_rank += 1
    return by_rank, by_step
