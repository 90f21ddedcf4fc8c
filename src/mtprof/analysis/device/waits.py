"""Calls of the host that wait for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Kind

if TYPE_CHECKING:
    from ..analysis import Analysis


def is_synchronising(name: str) -> bool:
    """Whether a runtime call of this name waits for the device.

    >>> [is_synchronising(name) for name in ("cudaStreamSynchronize", "aclrtSynchronizeStream", "cudaLaunchKernel")]
    [True, True, False]
    """
    return "ynchronize" in name or name in ("cudaMemcpy", "aclrtMemcpy")


def sync_rows(analysis: Analysis) -> np.ndarray:
    """Runtime calls of the host that wait for a device: by name, or copies that return when they are done."""
    trace, events = analysis.trace, analysis.trace.events
    waits = np.array([is_synchronising(name) for name in trace.names], bool)[events["name"]]
    # Calls that are named asynchronous wait anyway if the host's memory is not pinned.
    copies = np.flatnonzero((events["kind"] == Kind.COPY) & (analysis.launch >= 0))
    launch = analysis.launch[copies]
    waits[launch[events["end_ns"][copies] <= events["end_ns"][launch]]] = True
    return np.flatnonzero(waits & (events["kind"] == Kind.LAUNCH))
