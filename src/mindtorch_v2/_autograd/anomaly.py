"""Anomaly detection: a backward that makes NaN raises at once and names the node."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from .._dispatch.observer import tap


class AnomalyState:
    """Process-wide switch, read by the engine once per backward."""

    enabled = False
    check_nan = True


def switch(enabled: bool, check_nan: bool) -> None:
    """Turn anomaly detection on or off. While it is on, ops note where they were called."""
    AnomalyState.enabled, AnomalyState.check_nan = enabled, check_nan
    tap(_tracebacks().TAP if enabled else None, "anomaly")


def _tracebacks() -> Any:
    return importlib.import_module(f"{__package__}.tracebacks")


def note(node: Any) -> None:
    """The place where a node was made without an op."""
    _tracebacks().note(node)


def warn_of(node: Any) -> None:
    """State the origin of a node whose backward failed."""
    for text in _tracebacks().told(node):
        warnings.warn(text, stacklevel=3)


class set_detect_anomaly:
    """Turn the NaN check of backward on or off; also a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (AnomalyState.enabled, AnomalyState.check_nan)
        switch(bool(mode), check_nan)

    def __enter__(self) -> Any:
        return None

    def __exit__(self, *exc: object) -> None:
        switch(*self.before)


class detect_anomaly(set_detect_anomaly):
    """`set_detect_anomaly(True)` as a context manager that takes effect on entry."""

    def __init__(self, check_nan: bool = True) -> None:
        self.wanted = check_nan
        warnings.warn("Anomaly Detection has been enabled. This costs time: use it to find "
                      "faults.", stacklevel=2)

    def __enter__(self) -> None:
        self.before = (AnomalyState.enabled, AnomalyState.check_nan)
        switch(True, self.wanted)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return AnomalyState.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return AnomalyState.check_nan
