"""Converts the ranks' times to one clock.

A recording states how far its clock was from that of rank 0, and how wrong that may be. If it does not, its time of day
is taken as right. Collectives then check this: no rank leaves an all-reduce before all ranks have come. If a rank seems
to, its clock has drifted or jumped by at least that much; its times are shifted by that, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .digest import Digest

__all__ = ["one_clock"]

# No rank leaves these before all have come. In others one may, such as the root of a broadcast.
_MEETINGS = ("allreduce", "allreduce_coalesced", "all_gather", "allgather", "_allgather_base", "allgather_coalesced",
             "barrier", "reduce_scatter", "_reduce_scatter_base", "all_to_all", "all_to_allv", "alltoall")
_SLACK_NS = 1000  # Chrome traces have microseconds


def one_clock(files: Sequence[Digest]) -> list[str]:
    """Move the times of collectives and steps to the clock of the first rank; returns the problems, as sentences.

    Afterwards `offset_ns` of a file is what was added, without the shift that collectives proved.
    """
    reference = next((one for one in files if one.offset_ns is not None), files[0])
    day_ns = reference.epoch_ns - (reference.offset_ns or 0)  # from the clock of rank 0 to the time of day
    undated = any(one.offset_ns is None and one.epoch_ns == 0 for one in files)
    for one in files:
        one.offset_ns = one.epoch_ns if one.offset_ns is None else one.offset_ns + day_ns
        for times in (one.talks["start"], one.talks["end"], one.steps["start"]):
            times += one.offset_ns
    problems = []
    if len(files) > 1 and undated:
        problems.append("some files do not say when they were recorded, so waits between ranks are unknown")
    begins = max(one.start_ns + (one.offset_ns or 0) for one in files)
    ends = min(one.end_ns + (one.offset_ns or 0) for one in files)
    if len(files) > 1 and begins > ends:
        problems.append("the recordings do not overlap in time: the clocks of their machines differ, or they are from "
                        "different runs")
    for one in files[1:]:
        told = _correct(files[0], one)
        if told:
            problems.append(told)
    return problems


def _correct(reference: Digest, one: Digest) -> str:
    """Shift a rank's times by what its meetings with the reference rank prove; returns what that was, if anything."""
    here, there = _common(one, reference)
    if not len(here):
        return ""
    start, end = (one.talks[name][here] for name in ("start", "end"))
    low = reference.talks["start"][there] - end      # add at least this, so that it leaves after the other came
    high = reference.talks["end"][there] - start     # add at most this, so that the other leaves after it came
    bound = one.error_ns + reference.error_ns + _SLACK_NS
    if not ((low > bound) | (high < -bound)).any():
        return ""
    order = np.argsort(start, kind="stable")
    moved = np.empty(len(order), np.int64)
    now = 0
    for place, (least, most) in enumerate(zip(low[order].tolist(), high[order].tolist())):
        now = min(max(now, least), max(most, least))
        moved[place] = now
    times = start[order]
    for column in (one.talks["start"], one.talks["end"], one.steps["start"]):
        column += np.interp(column, times, moved).astype(np.int64)
    return _said(one.rank, reference.rank, times, moved, bound)


def _common(one: Digest, other: Digest) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the meetings at which both were."""
    groups = {word: place for place, word in enumerate(other.words)}
    same = np.array([groups.get(word, -1) for word in one.words] or [-1], np.int64)
    meets = np.array([word in _MEETINGS for word in one.words] or [False], bool)
    chosen = np.flatnonzero(meets[one.talks["operation"]] & (same[one.talks["group"]] >= 0))
    keys = same[one.talks["group"][chosen]] << 40 | one.talks["number"][chosen]
    _, here, there = np.intersect1d(keys, other.talks["group"] << 40 | other.talks["number"], return_indices=True)
    return chosen[here], there


def _said(rank: int, reference: int, times: np.ndarray, moved: np.ndarray, bound: int) -> str:
    most = int(moved[np.argmax(np.abs(moved))])
    said = f"the clock of rank {rank} differs from that of rank {reference} by {abs(most) / 1e6:.3f} ms or more"
    changes = np.abs(np.diff(moved))
    whole = int(changes.sum())
    if whole <= bound:
        return f"{said}; its times were shifted"
    if changes.max(initial=0) > 0.5 * whole:
        return f"{said}: it jumped by {changes.max() / 1e6:.3f} ms; its times were shifted"
    passed = max(int(times[-1] - times[0]), 1)
    return f"{said}: it drifts by {whole / passed * 1e6:.0f} ppm; its times were shifted"
