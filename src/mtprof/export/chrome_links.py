"""Arrows of a Chrome trace: from a forward op to its backward, from a launch to the work it queued, and from an
asynchronous collective to its wait."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..schema import DEVICE_KINDS, Kind
from ..trace import Trace


@dataclass(frozen=True)
class Links:
    """Pairs of rows, one arrow each, and the number that links the two ends in the file."""

    source: np.ndarray
    target: np.ndarray
    identity: np.ndarray


def is_device_work(trace: Trace) -> np.ndarray:
    """Which events ran on a device instead of a host thread."""
    return np.isin(trace.events["kind"], DEVICE_KINDS)


def forward_backward(trace: Trace, forward: np.ndarray) -> Links:
    """Arrows from forward ops to the backward functions they recorded, numbered from 1 in the order these ran."""
    target = np.flatnonzero((forward >= 0) & (trace.events["kind"] == Kind.BACKWARD_FUNCTION))
    target = target[np.argsort(trace.events["start_ns"][target], kind="stable")]
    return Links(forward[target], target, np.arange(1, len(target) + 1))


def collective_waits(trace: Trace) -> Links:
    """Arrows from asynchronous collectives to their waits, numbered from 1."""
    table = trace.optional("collectives")
    awaited = np.flatnonzero(table["wait"] >= 0)
    return Links(table["row"][awaited], table["wait"][awaited], np.arange(1, len(awaited) + 1))


def launches(trace: Trace) -> Links:
    """Arrows from host events to device work with the same correlation number."""
    correlation = trace.events["correlation"]
    on_device = is_device_work(trace)
    host = np.flatnonzero((correlation != 0) & ~on_device)
    work = np.flatnonzero((correlation != 0) & on_device)
    if not len(host):
        return Links(host, host, correlation[host])
    # The innermost host event of a number queued the work; rows are sorted with parents first, so the last one.
    host = host[np.argsort(correlation[host], kind="stable")]
    place = np.searchsorted(correlation[host], correlation[work], "right") - 1
    source = host[np.maximum(place, 0)]
    fits = (place >= 0) & (correlation[source] == correlation[work])
    return Links(source[fits], work[fits], correlation[work[fits]])
